/* SPDX-License-Identifier: Apache-2.0
 *
 * What an event costs in C:  cc -O2 -pthread -I include -o /tmp/event tests/c/event.c && /tmp/event
 * against a ring of its own, which it makes in /dev/shm. As benches/event.rs does it: the median of 100 rounds of
 * 1,000 calls, which are 2,000 events, each with its time and core.
 */
#include "weir_events.h"

enum { ROUNDS = 100, TIMES = 1000 };

static const char *make_ring(void) {
    static char path[] = "/dev/shm/weir-events-XXXXXX";
    static char bytes[4096 + 256 * 256 + 256 * 256 * 16];
    uint64_t magic = WEIR_EVENTS_MAGIC, state = 1;
    uint32_t numbers[4] = {1, 256, 256, 16};
    int file = mkstemp(path);
    memcpy(bytes, &magic, 8);
    memcpy(bytes + 8, numbers, 16);
    memcpy(bytes + 24, &state, 8);
    if (file < 0 || write(file, bytes, sizeof bytes) != (ssize_t)sizeof bytes) {
        perror(path);
        exit(1);
    }
    close(file);
    return path;
}

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static __attribute__((noinline)) void hot(void) {
    WEIR_EVENTS_HOT(3);
    __asm__ volatile("");
}

int main(void) {
    const char *path = make_ring();
    uint64_t took[ROUNDS], clock[ROUNDS];
    int round, i;
    weir_events_use(path);
    hot();
    if (!weir_events_thread.map) return 1;
    for (round = 0; round < ROUNDS; round++) {
        uint64_t start = weir_events_now();
        for (i = 0; i < TIMES; i++) hot();
        took[round] = weir_events_now() - start;
        start = weir_events_now();
        for (i = 0; i < TIMES; i++) __asm__ volatile("" : : "r"(weir_events_now()));
        clock[round] = weir_events_now() - start;
    }
    unlink(path);
    qsort(took, ROUNDS, sizeof *took, by_size);
    qsort(clock, ROUNDS, sizeof *clock, by_size);
    printf("event %.1f ns (best %.1f), of which the clock %.1f ns\n", (double)took[ROUNDS / 2] / (2 * TIMES),
           (double)took[0] / (2 * TIMES), (double)clock[ROUNDS / 2] / TIMES);
    return 0;
}
