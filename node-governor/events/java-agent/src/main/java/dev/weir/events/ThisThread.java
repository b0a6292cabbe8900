// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** The calling thread as the kernel knows it. */
final class ThisThread {
    /** Field 22 of `stat`, counted from the state (field 3), which follows the name. */
    private static final int STARTED = 22 - 3;

    final long pid;
    final long tid;
    /** In clock ticks since boot: tells it from a later thread with the same id. */
    final long started;

    final long namespace;

    private ThisThread(long pid, long tid, long started, long namespace) {
        this.pid = pid;
        this.tid = tid;
        this.started = started;
        this.namespace = namespace;
    }

    /** Reads `/proc`. A virtual thread has no id of its own there, so it gets no lane. */
    static ThisThread identify() throws IOException {
        if (Thread.currentThread().getClass().getName().contains("VirtualThread")) {
            throw new IOException("virtual threads are not observed");
        }
        // PID/task/TID
        String[] self = link("/proc/thread-self").split("/");
        // pid:[INODE]
        String namespace = link("/proc/self/ns/pid");
        namespace = namespace.substring(namespace.indexOf('[') + 1, namespace.indexOf(']'));
        return new ThisThread(
                Long.parseLong(self[0]), Long.parseLong(self[2]), started(self[2]), Long.parseLong(namespace));
    }

    /** What the word `owner` of its lane says. */
    long owner() {
        return tid << 32 | pid;
    }

    private static String link(String path) throws IOException {
        return Files.readSymbolicLink(Path.of(path)).toString();
    }

    private static long started(String tid) throws IOException {
        // Not a channel: those close when the thread has been interrupted.
        try (InputStream file = new FileInputStream("/proc/self/task/" + tid + "/stat")) {
            String stat = new String(file.readAllBytes(), StandardCharsets.ISO_8859_1);
            // The name stands in parentheses and may hold anything, also parentheses.
            String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
            return Long.parseLong(fields[STARTED]);
        }
    }
}
