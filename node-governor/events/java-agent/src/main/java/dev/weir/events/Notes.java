// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Lines on stderr. */
final class Notes {
    private static final Set<String> SAID = ConcurrentHashMap.newKeySet();

    private Notes() {}

    static void say(String line) {
        System.err.println("weir-events: " + line);
    }

    /** What would otherwise be said every second. */
    static void once(String line) {
        if (SAID.add(line)) {
            say(line);
        }
    }
}
