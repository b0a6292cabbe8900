// SPDX-License-Identifier: Apache-2.0
package dev.weir.search;

import java.util.Map;
import java.util.SplittableRandom;
import org.elasticsearch.action.bulk.BulkRequestBuilder;
import org.elasticsearch.action.bulk.BulkResponse;
import org.elasticsearch.client.Client;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.xcontent.XContentType;

/** Seeded documents: the same seed makes the same index. */
final class Documents {
    /** Terms of a document, about those of a short article. */
    private static final int SHORTEST = 50;

    private static final int LONGEST = 250;
    /** The only type that this Elasticsearch still has. */
    private static final String TYPE = "_doc";

    private static final int BULK = 1_000;

    private final TermCounts terms;
    private final SplittableRandom random;

    Documents(TermCounts terms, long seed) {
        this.terms = terms;
        this.random = new SplittableRandom(seed);
    }

    /** Makes the index, in one segment a shard, so that every copy of it is searched alike. */
    void index(Client client, int documents) {
        client.admin()
                .indices()
                .prepareCreate(SearchNode.INDEX)
                .setSettings(Settings.builder()
                        .put("index.number_of_shards", SearchNode.SHARDS)
                        .put("index.number_of_replicas", 0)
                        .put("index.refresh_interval", "-1")
                        .put("index.translog.durability", "async"))
                .addMapping(
                        TYPE,
                        "{\"_source\":{\"enabled\":false},\"properties\":"
                                + "{\"text\":{\"type\":\"text\",\"analyzer\":\"whitespace\"}}}",
                        XContentType.JSON)
                .get();
        for (int done = 0; done < documents; done += BULK) {
            bulk(client, done, Math.min(documents, done + BULK));
        }
        client.admin().indices().prepareForceMerge(SearchNode.INDEX).setMaxNumSegments(1).setFlush(true).get();
        client.admin().indices().prepareRefresh(SearchNode.INDEX).get();
    }

    private void bulk(Client client, int from, int until) {
        BulkRequestBuilder bulk = client.prepareBulk();
        for (int id = from; id < until; id++) {
            bulk.add(client.prepareIndex(SearchNode.INDEX, TYPE)
                    .setId(Integer.toString(id))
                    .setSource(Map.of("text", text()), XContentType.JSON));
        }
        BulkResponse answer = bulk.get();
        if (answer.hasFailures()) {
            throw new IllegalStateException(answer.buildFailureMessage());
        }
    }

    private String text() {
        int length = random.nextInt(SHORTEST, LONGEST + 1);
        StringBuilder text = new StringBuilder(6 * length);
        for (int i = 0; i < length; i++) {
            text.append(terms.draw(random)).append(' ');
        }
        return text.toString();
    }
}
