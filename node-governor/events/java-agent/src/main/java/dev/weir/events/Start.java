// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import java.lang.instrument.Instrumentation;
import java.util.concurrent.TimeUnit;

/** Reads the arguments and puts the hot methods under observation. */
public final class Start {
    /** Long enough for most programs to have loaded what they start with. */
    private static final long PATIENCE_S = 10;

    /** The ring that is written, while one is: whoever attaches the agent sees by it who was first. */
    private static final String ACTIVE = "weir.events.ring";

    private Start() {}

    /** Starts the agent, or says in one line why it stays inactive. */
    public static synchronized void start(String written, Instrumentation instrumentation) {
        Arguments arguments;
        try {
            arguments = Arguments.parse(written);
        } catch (IllegalArgumentException wrong) {
            Notes.say("not active: " + wrong.getMessage());
            return;
        }
        String other = System.getProperty(ACTIVE);
        if (other != null) {
            Notes.say("not active: the program's events go to " + other + " already");
            return;
        }
        System.setProperty(ACTIVE, arguments.ring.toString());
        Events.attachTo(arguments.ring);
        HotMethods hot = new HotMethods(arguments.methods);
        instrumentation.addTransformer(hot, true);
        retransform(hot, instrumentation);
        if (arguments.seconds > 0) {
            after(arguments.seconds, () -> end(hot, instrumentation));
        } else {
            after(PATIENCE_S, () -> hot.noteMissing(PATIENCE_S));
        }
    }

    /** The methods are as they were before. */
    private static synchronized void end(HotMethods hot, Instrumentation instrumentation) {
        instrumentation.removeTransformer(hot);
        retransform(hot, instrumentation);
        Events.detach();
        System.clearProperty(ACTIVE);
    }

    private static void after(long seconds, Runnable act) {
        Thread thread = new Thread(
                () -> {
                    try {
                        TimeUnit.SECONDS.sleep(seconds);
                    } catch (InterruptedException ended) {
                        return;
                    }
                    act.run();
                },
                "weir-events");
        thread.setDaemon(true);
        thread.start();
    }

    /** Classes that the JVM has loaded before the agent. */
    private static void retransform(HotMethods hot, Instrumentation instrumentation) {
        for (Class<?> loaded : instrumentation.getAllLoadedClasses()) {
            if (!hot.isHot(loaded.getName()) || !instrumentation.isModifiableClass(loaded)) {
                continue;
            }
            try {
                instrumentation.retransformClasses(loaded);
            } catch (Exception | LinkageError failure) {
                Notes.say("cannot observe " + loaded.getName() + ": " + failure);
            }
        }
    }
}
