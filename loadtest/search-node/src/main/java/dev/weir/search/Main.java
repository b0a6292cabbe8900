// SPDX-License-Identifier: Apache-2.0
package dev.weir.search;

import java.nio.file.Path;

/**
 * Elasticsearch in one program, on a folder of its own.
 *
 * <pre>
 *  index FOLDER COUNTS DOCUMENTS SEED   makes an index of generated documents, and ends
 *  serve FOLDER PORTS                   answers searches until it is killed; PORTS is written once it does
 * </pre>
 */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws Exception {
        String what = arguments.length == 0 ? "" : arguments[0];
        if (what.equals("index") && arguments.length == 5) {
            int documents = Integer.parseInt(arguments[3]);
            long seed = Long.parseLong(arguments[4]);
            try (SearchNode node = SearchNode.start(Path.of(arguments[1]))) {
                new Documents(TermCounts.read(Path.of(arguments[2])), seed).index(node.client(), documents);
            }
            // Threads of Elasticsearch may linger.
            System.exit(0);
        } else if (what.equals("serve") && arguments.length == 3) {
            SearchNode node = SearchNode.start(Path.of(arguments[1]));
            node.awaitShards();
            node.writePorts(Path.of(arguments[2]));
            Thread.currentThread().join();
        } else {
            System.err.println("expected: index FOLDER COUNTS DOCUMENTS SEED, or: serve FOLDER PORTS");
            System.exit(2);
        }
    }
}
