// SPDX-License-Identifier: Apache-2.0
package dev.weir.search;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;

/** How often each term occurred, and terms drawn by it. */
final class TermCounts {
    /** Occurrences of this rank and all before it. */
    private final long[] cumulative;

    private TermCounts(long[] cumulative) {
        this.cumulative = cumulative;
    }

    /** Reads lines `rank,count` under a line of names. */
    static TermCounts read(Path file) throws IOException {
        List<String> lines = Files.readAllLines(file);
        long[] cumulative = new long[lines.size() - 1];
        long sum = 0;
        for (int i = 0; i < cumulative.length; i++) {
            String line = lines.get(i + 1);
            sum += Long.parseLong(line.substring(line.indexOf(',') + 1));
            cumulative[i] = sum;
        }
        return new TermCounts(cumulative);
    }

    /** A term, named by its rank: `t1` is the most frequent. */
    String draw(SplittableRandom random) {
        long at = random.nextLong(cumulative[cumulative.length - 1]) + 1;
        int found = Arrays.binarySearch(cumulative, at);
        return "t" + ((found < 0 ? -found - 1 : found) + 1);
    }
}
