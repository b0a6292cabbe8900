// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import java.util.concurrent.CountDownLatch;
import java.util.zip.CRC32;

/** A program to observe, in processes of its own. It prints `done` at its end. */
public final class Target {
    private Target() {}

    interface Bodiless {
        void run();
    }

    static long hot(long n) {
        return n * n;
    }

    /** An overload. */
    static long hot(int n) {
        return hot((long) n);
    }

    static int factorial(int n) {
        return n < 2 ? 1 : n * factorial(n - 1);
    }

    static void fail() {
        throw new IllegalStateException("as it should");
    }

    static long overflow(long n) {
        return 1 + overflow(n + 1);
    }

    /** What is run: a name for each of the tests. */
    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "calls":
                hot(2);
                factorial(10);
                break;
            case "secured":
                // As Elasticsearch does when it has read its configuration.
                System.setSecurityManager(new SecurityManager());
                hot(1L);
                break;
            case "fails":
                try {
                    fail();
                } catch (IllegalStateException expected) {
                    System.out.println(expected.getMessage());
                }
                break;
            case "overflows":
                for (int i = 0; i < 20; i++) {
                    try {
                        overflow(0);
                    } catch (StackOverflowError expected) {
                        hot(1L);
                    }
                }
                break;
            case "threads":
                CountDownLatch called = new CountDownLatch(4);
                for (int i = 0; i < 4; i++) {
                    Thread thread = new Thread(() -> {
                        for (int call = 0; call < 1000; call++) {
                            hot(1L);
                        }
                        called.countDown();
                        while (true) {
                            Thread.onSpinWait();
                        }
                    });
                    thread.setDaemon(true);
                    thread.start();
                }
                called.await();
                break;
            case "jdk":
                new CRC32().update(new byte[10], 0, 10);
                break;
            case "until told":
                while (System.in.available() == 0) {
                    hot(1L);
                    Thread.sleep(1);
                }
                break;
            case "abstract":
                ((Bodiless) () -> hot(1L)).run();
                break;
            default:
                throw new IllegalArgumentException(arguments[0]);
        }
        System.out.println("done");
    }
}
