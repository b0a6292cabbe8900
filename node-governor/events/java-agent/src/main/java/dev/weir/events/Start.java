// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import java.lang.instrument.Instrumentation;

/** Reads the arguments and puts the hot methods under observation. */
public final class Start {
    /** Long enough for most programs to have loaded what they start with. */
    private static final long PATIENCE_S = 10;

    private Start() {}

    /** Starts the agent, or says in one line why it stays inactive. */
    public static void start(String written, Instrumentation instrumentation) {
        Arguments arguments;
        try {
            arguments = Arguments.parse(written);
        } catch (IllegalArgumentException wrong) {
            Notes.say("not active: " + wrong.getMessage());
            return;
        }
        Events.attachTo(arguments.ring);
        HotMethods hot = new HotMethods(arguments.methods);
        instrumentation.addTransformer(hot, true);
        retransform(hot, instrumentation);
        hot.noteMissingAfter(PATIENCE_S);
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
