// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import java.io.File;
import java.lang.instrument.Instrumentation;
import java.util.jar.JarFile;

/**
 * Where the JVM starts the agent. Whatever goes wrong here is said on stderr, and the program runs.
 *
 * <p>This class alone is loaded by the system class loader. It puts the agent's own jar on the search path of the
 * bootstrap loader before any other class of the agent is used, so that {@link Events} is one class that every class
 * loader of the program sees, whichever parents it has.
 */
public final class Agent {
    private static boolean onBootstrapPath;

    private Agent() {}

    /** Called by the JVM before the program's {@code main}. */
    public static void premain(String arguments, Instrumentation instrumentation) {
        try {
            start(arguments, instrumentation);
        } catch (Throwable failure) {
            System.err.println("weir-events: not active: " + failure);
        }
    }

    /** Called by the JVM of a program that runs already. */
    public static void agentmain(String arguments, Instrumentation instrumentation) {
        premain(arguments, instrumentation);
    }

    private static synchronized void start(String arguments, Instrumentation instrumentation) throws Exception {
        if (!onBootstrapPath) {
            File jar = new File(Agent.class.getProtectionDomain().getCodeSource().getLocation().toURI());
            instrumentation.appendToBootstrapClassLoaderSearch(new JarFile(jar));
            onBootstrapPath = true;
        }
        Start.start(arguments, instrumentation);
    }
}
