// SPDX-License-Identifier: Apache-2.0
package dev.weir.events;

/** A method whose calls are told, with all its overloads. Methods with the same id count as one function. */
final class HotMethod {
    final int id;
    /** As {@link Class#getName()} writes it: {@code a.b.Outer$Inner}. */
    final String type;

    final String name;

    private HotMethod(int id, String type, String name) {
        this.id = id;
        this.type = type;
        this.name = name;
    }

    /** Reads {@code ID:CLASS.METHOD}. */
    static HotMethod parse(String written) {
        int colon = written.indexOf(':');
        int dot = written.lastIndexOf('.');
        if (colon < 1 || dot < colon + 2 || dot == written.length() - 1) {
            throw new IllegalArgumentException("hot `" + written + "` is not ID:CLASS.METHOD");
        }
        int id;
        try {
            id = Integer.parseInt(written.substring(0, colon));
        } catch (NumberFormatException notANumber) {
            id = -1;
        }
        if (id < 0 || id >= Layout.FUNCTIONS) {
            throw new IllegalArgumentException(
                    "hot `" + written + "`: the id is not 0 to " + (Layout.FUNCTIONS - 1));
        }
        String name = written.substring(dot + 1);
        if (name.startsWith("<")) {
            throw new IllegalArgumentException("hot `" + written + "`: only methods, no constructors");
        }
        return new HotMethod(id, written.substring(colon + 1, dot), name);
    }
}
