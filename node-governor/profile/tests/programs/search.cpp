// SPDX-License-Identifier: Apache-2.0
// A made-up search engine: a server that waits for queries, each of which is parsed in no time, evaluated by scoring
// many documents, and answered. Runs until its standard input ends.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdint>
#include <thread>

#define OWN __attribute__((noinline))

static volatile uint64_t sink;

namespace scorer {
// Called thousands of times for each query.
OWN uint64_t score(uint64_t document) {
    uint64_t all = document;
    for (int i = 0; i < 200; i++) {
        all = all * 6364136223846793005u + 1442695040888963407u;
    }
    return all;
}
}  // namespace scorer

namespace index_of {
OWN void collect(int documents) {
    uint64_t best = 0;
    for (int i = 0; i < documents; i++) {
        best ^= scorer::score(i);
    }
    sink = best;
}

OWN void evaluate(int documents) {
    collect(documents);
    sink = sink + 1;
}
}  // namespace index_of

namespace server {
OWN void answer() {
    sink = scorer::score(sink);
}

OWN void query(int number) {
    index_of::evaluate(20000 + 10000 * (number % 3));
    answer();
}

OWN void run(const std::atomic<bool> &ended) {
    for (int number = 0; !ended; number++) {
        query(number);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}
}  // namespace server

int main() {
    std::atomic<bool> ended{false};
    std::thread serving([&] { server::run(ended); });
    while (std::getchar() != EOF) {
    }
    ended = true;
    serving.join();
}
