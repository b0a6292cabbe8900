// SPDX-License-Identifier: Apache-2.0

/** The engine of search.cpp as a program of the JVM: queries of its own, until its standard input ends. */
final class Search {
    private Search() {}

    static volatile long sink;

    static final class Scorer {
        /** Called thousands of times for each query. */
        static long score(long document) {
            long all = document;
            for (int i = 0; i < 200; i++) {
                all = all * 6364136223846793005L + 1442695040888963407L;
            }
            return all;
        }
    }

    static final class Index {
        static void evaluate(int documents) {
            long best = 0;
            for (int i = 0; i < documents; i++) {
                best ^= Scorer.score(i);
            }
            sink = best;
        }
    }

    static final class Server implements Runnable {
        @Override
        public void run() {
            for (int number = 0; true; number++) {
                query(number);
            }
        }

        private static void query(int number) {
            Index.evaluate(20_000 + 10_000 * (number % 3));
            sink = Scorer.score(sink);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Thread serving = new Thread(new Server());
        serving.setDaemon(true);
        serving.start();
        while (System.in.read() >= 0) {
            // Until its end.
        }
    }
}
