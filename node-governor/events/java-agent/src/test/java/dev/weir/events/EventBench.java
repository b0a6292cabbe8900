// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/**
 * What an event costs, timestamp and all: the same small method with and without the agent's code, in turns, in a
 * JVM of its own with the packed agent. Printed as nanoseconds of CPU time per event; a call has two.
 */
public final class EventBench {
    private static final int WARM_UP = 5;
    private static final int ROUNDS = 25;
    private static final int CALLS = 2_000_000;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private EventBench() {}

    private static long plain(long state) {
        return state * 6364136223846793005L + 1442695040888963407L;
    }

    private static long observed(long state) {
        return state * 6364136223846793005L + 1442695040888963407L;
    }

    /** Of this thread: what other programs take from the machine is not in it. */
    private static long cpu() {
        return THREADS.getCurrentThreadCpuTime();
    }

    /** Without arguments: makes a ring and starts the JVM that measures. */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length > 0) {
            measure(RingFile.create(Path.of(arguments[0]), 256, 256));
            return;
        }
        Path folder = Files.createTempDirectory(Path.of("/dev/shm"), "weir-bench");
        Path ring = folder.resolve("bench.events");
        try {
            List<String> command = List.of(
                    Path.of(System.getProperty("java.home"), "bin/java").toString(),
                    "-Xmx64m",
                    "-javaagent:target/weir-events-agent.jar=ring=" + ring
                            + ",hot=1:dev.weir.events.EventBench.observed",
                    "-cp",
                    "target/test-classes",
                    "dev.weir.events.EventBench",
                    ring.toString());
            System.exit(new ProcessBuilder(command).inheritIO().start().waitFor());
        } finally {
            Files.deleteIfExists(ring);
            Files.delete(folder);
        }
    }

    private static void measure(RingFile ring) throws Exception {
        long state = 1;
        double[] events = new double[ROUNDS];
        double[] clock = new double[ROUNDS];
        for (int round = -WARM_UP; round < ROUNDS; round++) {
            long start = cpu();
            for (int i = 0; i < CALLS; i++) {
                state = plain(state);
            }
            long middle = cpu();
            for (int i = 0; i < CALLS; i++) {
                state = observed(state);
            }
            long end = cpu();
            for (int i = 0; i < 2 * CALLS; i++) {
                state ^= System.nanoTime();
            }
            long last = cpu();
            if (round >= 0) {
                events[round] = (double) ((end - middle) - (middle - start)) / (2L * CALLS);
                clock[round] = (double) (last - end) / (2L * CALLS);
            }
        }
        long expected = 2L * CALLS * (WARM_UP + ROUNDS);
        long written = ring.only().written();
        if (written != expected) {
            throw new AssertionError(written + " events were written instead of " + expected);
        }
        print("an event", events);
        print("of it, reading the clock", clock);
        System.out.println("(" + ROUNDS + " rounds of " + 2 * CALLS + " events; " + (state & 1) + ")");
    }

    private static void print(String what, double[] ns) {
        Arrays.sort(ns);
        System.out.printf(
                "%-25s median %5.1f ns, lowest %5.1f, highest %5.1f%n", what, ns[ns.length / 2], ns[0], ns[ns.length - 1]);
    }
}
