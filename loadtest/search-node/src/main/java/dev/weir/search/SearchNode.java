// SPDX-License-Identifier: Apache-2.0
package dev.weir.search;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Map;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.core.TimeValue;
import org.elasticsearch.env.Environment;
import org.elasticsearch.http.HttpServerTransport;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.node.NodeValidationException;
import org.elasticsearch.transport.Netty4Plugin;

/** A node that is a cluster by itself, on free ports of loopback. */
final class SearchNode extends Node {
    static final String INDEX = "documents";
    /** One a core of the machines this is measured on, as document 002 has it: a query is searched by all of them. */
    static final int SHARDS = 2;

    private SearchNode(Environment environment) {
        super(environment, List.of(Netty4Plugin.class), true);
    }

    static SearchNode start(Path folder) throws NodeValidationException {
        Settings settings = Settings.builder()
                .put("path.home", folder)
                .put("path.data", folder.resolve("data"))
                .put("cluster.name", "weir-search")
                .put("node.name", "weir-search")
                .put("discovery.type", "single-node")
                .put("network.host", "127.0.0.1")
                .put("http.port", "0")
                .put("transport.port", "0")
                .put("transport.type", "netty4")
                .put("http.type", "netty4")
                .put("node.processors", SHARDS)
                .put("thread_pool.search.size", SHARDS)
                // A full disk of the developer is not what is measured.
                .put("cluster.routing.allocation.disk.threshold_enabled", false)
                .build();
        SearchNode node = new SearchNode(InternalSettingsPreparer.prepareEnvironment(
                settings, Map.of(), null, () -> "weir-search"));
        node.start();
        return node;
    }

    /** Waits until all shards can be searched. */
    void awaitShards() {
        boolean late = client().admin()
                .cluster()
                .prepareHealth(INDEX)
                .setWaitForGreenStatus()
                .setTimeout(TimeValue.timeValueSeconds(60))
                .get()
                .isTimedOut();
        if (late) {
            throw new IllegalStateException("the shards of " + INDEX + " did not start within a minute");
        }
    }

    /** Beside its place and renamed: a reader sees the whole file or none. */
    void writePorts(Path file) throws IOException {
        InetSocketAddress address = injector()
                .getInstance(HttpServerTransport.class)
                .boundAddress()
                .publishAddress()
                .address();
        Path unfinished = file.resolveSibling(file.getFileName() + ".part");
        Files.writeString(unfinished, "{\"http\":\"127.0.0.1:" + address.getPort() + "\"}");
        Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE);
    }
}
