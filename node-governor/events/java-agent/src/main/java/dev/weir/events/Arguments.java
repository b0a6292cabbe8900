// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** What the agent was told: {@code ring=PATH,hot=ID:CLASS.METHOD[,hot=ID:CLASS.METHOD...][,for=SECONDS]}, or {@code @FILE} with that. */
final class Arguments {
    /** How one looks, for messages. */
    private static final String FORM = "ring=PATH,hot=ID:CLASS.METHOD[,hot=...][,for=SECONDS]";

    /** A day. */
    private static final long LONGEST_S = 86_400;

    final Path ring;
    final List<HotMethod> methods;
    /** After so many the methods are as they were; 0: never. */
    final long seconds;

    private Arguments(Path ring, List<HotMethod> methods, long seconds) {
        this.ring = ring;
        this.methods = List.copyOf(methods);
        this.seconds = seconds;
    }

    /** Reads and checks them; throws {@link IllegalArgumentException} with a reason for people. */
    static Arguments parse(String written) {
        if (written != null && written.startsWith("@")) {
            return parsed(text(Path.of(written.substring(1))));
        }
        return parsed(written);
    }

    /** A JVM that runs takes no more than 1,024 characters. */
    private static String text(Path file) {
        try {
            return Files.readString(file).strip();
        } catch (IOException failure) {
            throw new IllegalArgumentException("arguments in " + file + ": " + failure);
        }
    }

    private static Arguments parsed(String written) {
        if (written == null || written.isEmpty()) {
            throw new IllegalArgumentException("no arguments; expected " + FORM);
        }
        Path ring = null;
        long seconds = 0;
        List<HotMethod> methods = new ArrayList<>();
        for (String part : written.split(",", -1)) {
            int equals = part.indexOf('=');
            String name = equals < 0 ? part : part.substring(0, equals);
            String value = part.substring(equals + 1);
            if (equals >= 0 && name.equals("ring")) {
                if (ring != null) {
                    throw new IllegalArgumentException("`ring` is given twice");
                }
                ring = ring(value);
            } else if (equals >= 0 && name.equals("hot")) {
                add(methods, HotMethod.parse(value));
            } else if (equals >= 0 && name.equals("for")) {
                seconds = seconds(value);
            } else {
                throw new IllegalArgumentException("`" + part + "` is not known; expected " + FORM);
            }
        }
        if (ring == null || methods.isEmpty()) {
            String missing = ring == null ? "ring" : "hot";
            throw new IllegalArgumentException("`" + missing + "` is missing; expected " + FORM);
        }
        return new Arguments(ring, methods, seconds);
    }

    private static long seconds(String value) {
        try {
            long seconds = Long.parseLong(value);
            if (seconds >= 1 && seconds <= LONGEST_S) {
                return seconds;
            }
        } catch (NumberFormatException notANumber) {
            // Said below.
        }
        throw new IllegalArgumentException("for `" + value + "` is not 1 to " + LONGEST_S + " seconds");
    }

    private static Path ring(String value) {
        Path ring = Path.of(value);
        if (!ring.isAbsolute()) {
            throw new IllegalArgumentException("ring `" + value + "` is not an absolute path");
        }
        return ring;
    }

    private static void add(List<HotMethod> methods, HotMethod method) {
        for (HotMethod other : methods) {
            if (other.type.equals(method.type) && other.name.equals(method.name)) {
                throw new IllegalArgumentException("`" + method.type + "." + method.name + "` is given twice");
            }
        }
        methods.add(method);
    }
}
