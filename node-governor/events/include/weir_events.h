/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells the node's governor which hot function runs on which thread, and since when. One header, nothing to link
 * but -pthread. For gcc and clang, C99 or later and C++, Linux on x86-64 and aarch64.
 *
 *     #include "weir_events.h"
 *
 *     void score(void) {
 *         WEIR_EVENTS_HOT(3);   // hot until the end of this block, however it is left
 *         ...
 *     }
 *
 * or weir_events_enter(3) and weir_events_leave(3), in pairs on one thread. Functions have numbers from 0 to 15;
 * of calls within a call of the same function only the outermost counts.
 *
 * The file is the one given to weir_events_use(), else the environment's WEIR_EVENTS, else
 * /run/weir/weir.events. While it is missing, replaced, of another version or full, the calls do nothing and it
 * is tried again at most once a second. The program is never harmed, and told once on standard error.
 *
 * A thread's lane is given back at its end. After a fork the child claims lanes of its own.
 *
 * The layout is that of src/layout.rs, version 1. Each word of a lane has one writer: plain stores with release
 * order, by the compilers' own atomics, because those of C11 do not compile as C++.
 */
#ifndef WEIR_EVENTS_H
#define WEIR_EVENTS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if !defined(CLOCK_MONOTONIC) || !defined(CPU_SETSIZE)
#error "include weir_events.h before other headers, or compile with -D_GNU_SOURCE"
#endif
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the shared memory of weir_events.h is little endian"
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WEIR_EVENTS_FUNCTIONS = 16,
    WEIR_EVENTS_HEADER = 4096,
    WEIR_EVENTS_HEAD = 256,
    WEIR_EVENTS_EVENT = 16,
    WEIR_EVENTS_ENTER = 1,
    WEIR_EVENTS_LEAVE = 2
};
#define WEIR_EVENTS_MAGIC UINT64_C(0x3154564552494557)
#define WEIR_EVENTS_RETRY_NS UINT64_C(1000000000)

/* One copy for the whole program, in however many files the header is included. */
#define WEIR_EVENTS_ONE __attribute__((weak))
#define WEIR_EVENTS_COLD static __attribute__((cold, noinline, unused))
#define WEIR_EVENTS_HERE static inline __attribute__((unused))

/* A file that was good when it was mapped. */
struct weir_events_map {
    uint64_t *words;
    size_t bytes;
    uint32_t lanes;
    uint32_t events_per_lane;
    /* The program's own, and one for each thread with a lane in it. */
    uint64_t users;
};

/* What a thread is in the middle of, and its lane: `map` is 0 where it has none. */
struct weir_events_thread {
    struct weir_events_map *map;
    uint64_t *head;
    uint64_t *slots;
    uint64_t owner;
    uint64_t written;
    uint64_t forks;
    uint64_t retry_ns;
    uint64_t since_ns[WEIR_EVENTS_FUNCTIONS];
    uint32_t depth[WEIR_EVENTS_FUNCTIONS];
    /* A signal handler that interrupts this very code does nothing. */
    int busy;
};

struct weir_events_program {
    pthread_mutex_t lock;
    pthread_once_t once;
    pthread_key_t at_exit;
    struct weir_events_map *map;
    const char *path;
    uint64_t retry_ns;
    uint64_t forks;
    /* Bit for each kind of problem that was told since the file was last good. */
    unsigned told;
};

WEIR_EVENTS_ONE struct weir_events_program weir_events_program = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_ONCE_INIT, 0, 0, 0, 0, 0, 0};
WEIR_EVENTS_ONE __thread struct weir_events_thread weir_events_thread;
/* Where problems are told; 0 = on standard error. */
WEIR_EVENTS_ONE void (*weir_events_complain)(const char *problem);

/* The file to use. To be called before anything else here; the text must stay. */
WEIR_EVENTS_HERE void weir_events_use(const char *path) {
    weir_events_program.path = path;
}

WEIR_EVENTS_HERE uint64_t weir_events_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

WEIR_EVENTS_HERE void weir_events_store(uint64_t *word, uint64_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

WEIR_EVENTS_HERE uint64_t weir_events_load(const uint64_t *word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* Neither has the file been replaced nor the lane been taken away. */
WEIR_EVENTS_HERE int weir_events_is_mine(const struct weir_events_thread *t) {
    return t->map && t->forks == weir_events_program.forks && weir_events_load(t->map->words + 3) == 1 &&
           weir_events_load(t->head) == t->owner;
}

WEIR_EVENTS_HERE void weir_events_record(struct weir_events_thread *t, uint64_t kind, unsigned function,
                                         uint64_t time) {
    uint64_t number = t->written;
    uint64_t *slot = t->slots + 2 * (number & (t->map->events_per_lane - 1));
    int cpu = sched_getcpu();
    uint64_t core = cpu < 0 || cpu >= 0xFFFF ? 0xFFFF : (uint64_t)cpu;
    weir_events_store(slot, time);
    weir_events_store(slot + 1, (number & UINT32_MAX) | kind << 32 | (uint64_t)function << 40 | core << 48);
    weir_events_store(t->head + 16 + function, kind == WEIR_EVENTS_ENTER ? time : 0);
    weir_events_store(t->head + 9, core == 0xFFFF ? UINT64_MAX : core);
    t->written = number + 1;
    weir_events_store(t->head + 8, number + 1);
}

/* With the lock. */
WEIR_EVENTS_COLD void weir_events_leave_map(struct weir_events_map *map) {
    if (map && __atomic_sub_fetch(&map->users, 1, __ATOMIC_ACQ_REL) == 0) {
        munmap(map->words, map->bytes);
        free(map);
    }
}

/* Gives the calling thread's lane back. A thread does so by itself at its end. */
WEIR_EVENTS_COLD void weir_events_release(void) {
    struct weir_events_thread *t = &weir_events_thread;
    struct weir_events_map *map = t->map;
    int i;
    if (!map) return;
    if (weir_events_is_mine(t)) {
        for (i = 0; i < WEIR_EVENTS_FUNCTIONS; i++) weir_events_store(t->head + 16 + i, 0);
        weir_events_store(t->head + 1, 0);
        weir_events_store(t->head + 2, 0);
        weir_events_store(t->head, 0);
    }
    t->map = 0;
    weir_events_leave_map(map);
}

WEIR_EVENTS_COLD void weir_events_at_exit(void *unused) {
    (void)unused;
    weir_events_release();
}

WEIR_EVENTS_COLD void weir_events_forked(void) {
    weir_events_program.forks++;
}

WEIR_EVENTS_COLD void weir_events_once(void) {
    pthread_atfork(0, 0, weir_events_forked);
    pthread_key_create(&weir_events_program.at_exit, weir_events_at_exit);
}

WEIR_EVENTS_COLD void weir_events_tell(unsigned kind, const char *path, const char *problem) {
    char text[512];
    if (weir_events_program.told & 1u << kind) return;
    weir_events_program.told |= 1u << kind;
    snprintf(text, sizeof text, "weir-events: %s: %s; hot functions are not told to the governor until that is over",
             path, problem);
    if (weir_events_complain) {
        weir_events_complain(text);
    } else {
        fprintf(stderr, "%s\n", text);
    }
}

/* With the lock. 0 where the file cannot be used. */
WEIR_EVENTS_COLD struct weir_events_map *weir_events_open(const char *path) {
    char problem[128];
    unsigned char page[40];
    struct stat found;
    struct weir_events_map *map = 0;
    void *words;
    uint64_t magic, state, bytes;
    uint32_t numbers[4]; /* version, lanes, events_per_lane, functions */
    int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 || fstat(file, &found) != 0) {
        weir_events_tell(0, path, strerror(errno));
        goto out;
    }
    memset(page, 0, sizeof page);
    if (pread(file, page, sizeof page, 0) < 0) {
        weir_events_tell(0, path, strerror(errno));
        goto out;
    }
    memcpy(&magic, page, 8);
    memcpy(numbers, page + 8, 16);
    memcpy(&state, page + 24, 8);
    if (magic != WEIR_EVENTS_MAGIC) {
        weir_events_tell(1, path, "the first 8 bytes are not \"WEIREVT1\"");
        goto out;
    }
    if (numbers[0] != 1 || numbers[3] != WEIR_EVENTS_FUNCTIONS) {
        snprintf(problem, sizeof problem, "version is %u with %u functions, this program knows 1 with 16", numbers[0],
                 numbers[3]);
        weir_events_tell(2, path, problem);
        goto out;
    }
    if (numbers[1] < 1 || numbers[1] > 4096 || numbers[2] < 16 || numbers[2] > 65536 ||
        (numbers[2] & (numbers[2] - 1))) {
        snprintf(problem, sizeof problem,
                 "%u lanes with %u events, expected 1 to 4096 with a power of two, 16 to 65536", numbers[1],
                 numbers[2]);
        weir_events_tell(3, path, problem);
        goto out;
    }
    bytes = WEIR_EVENTS_HEADER +
            (uint64_t)numbers[1] * (WEIR_EVENTS_HEAD + (uint64_t)numbers[2] * WEIR_EVENTS_EVENT);
    if ((uint64_t)found.st_size != bytes) {
        snprintf(problem, sizeof problem, "the file has %llu bytes, expected %llu",
                 (unsigned long long)found.st_size, (unsigned long long)bytes);
        weir_events_tell(4, path, problem);
        goto out;
    }
    if (state != 1) {
        weir_events_tell(5, path, "retired by the governor");
        goto out;
    }
    words = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (words == MAP_FAILED) {
        weir_events_tell(0, path, strerror(errno));
        goto out;
    }
    map = (struct weir_events_map *)malloc(sizeof *map);
    if (!map) {
        munmap(words, bytes);
        goto out;
    }
    map->words = (uint64_t *)words;
    map->bytes = bytes;
    map->lanes = numbers[1];
    map->events_per_lane = numbers[2];
    map->users = 1;
    weir_events_program.told = 0;
out:
    if (file >= 0) close(file);
    return map;
}

/* With the lock. The live file, looked for at most once a second. */
WEIR_EVENTS_COLD struct weir_events_map *weir_events_find(uint64_t now) {
    struct weir_events_program *p = &weir_events_program;
    if (p->map && weir_events_load(p->map->words + 3) == 1) return p->map;
    weir_events_leave_map(p->map);
    p->map = 0;
    if (now < p->retry_ns) return 0;
    if (!p->path) p->path = getenv("WEIR_EVENTS");
    if (!p->path) p->path = "/run/weir/weir.events";
    p->map = weir_events_open(p->path);
    if (!p->map) p->retry_ns = now + WEIR_EVENTS_RETRY_NS;
    return p->map;
}

/* Field 22 of this thread's `stat`, which tells it from a later one with its id, or 0. */
WEIR_EVENTS_COLD uint64_t weir_events_started(void) {
    char text[1024];
    char *field;
    ssize_t length;
    int spaces;
    int file = open("/proc/thread-self/stat", O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return 0;
    text[length] = 0;
    field = strrchr(text, ')'); /* the name before it may have spaces and brackets of its own */
    for (spaces = 0; field && spaces < 20; spaces++) field = strchr(field + 1, ' ');
    return field ? strtoull(field + 1, 0, 10) : 0;
}

/* With the lock. Claims the first free lane, from one on that differs by thread. */
WEIR_EVENTS_COLD void weir_events_claim_in(struct weir_events_map *map, uint64_t now) {
    struct weir_events_thread *t = &weir_events_thread;
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    uint32_t i, lane = 0;
    unsigned f;
    struct stat namespace_;
    t->forks = weir_events_program.forks;
    t->owner = (uint64_t)tid << 32 | (uint32_t)getpid();
    for (i = 0; i < map->lanes; i++) {
        uint64_t nobody = 0;
        lane = (tid % map->lanes + i) % map->lanes;
        t->head = map->words + (WEIR_EVENTS_HEADER + (uint64_t)lane * WEIR_EVENTS_HEAD) / 8;
        if (__atomic_compare_exchange_n(t->head, &nobody, t->owner, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) break;
    }
    if (i == map->lanes) {
        char problem[64];
        snprintf(problem, sizeof problem, "all %u lanes are taken", map->lanes);
        weir_events_tell(6, weir_events_program.path, problem);
        t->retry_ns = now + WEIR_EVENTS_RETRY_NS;
        return;
    }
    t->slots = map->words + (WEIR_EVENTS_HEADER + (uint64_t)map->lanes * WEIR_EVENTS_HEAD +
                             (uint64_t)lane * map->events_per_lane * WEIR_EVENTS_EVENT) /
                                8;
    t->written = weir_events_load(t->head + 8);
    t->map = map;
    __atomic_add_fetch(&map->users, 1, __ATOMIC_RELAXED);
    weir_events_store(t->head + 2, stat("/proc/self/ns/pid", &namespace_) == 0 ? namespace_.st_ino : 0);
    weir_events_store(t->head + 1, weir_events_started());
    pthread_setspecific(weir_events_program.at_exit, t);
    for (f = 0; f < WEIR_EVENTS_FUNCTIONS; f++) {
        if (t->depth[f]) weir_events_record(t, WEIR_EVENTS_ENTER, f, t->since_ns[f]);
    }
}

/* Claims a lane, and says in it what runs. */
WEIR_EVENTS_COLD void weir_events_claim(uint64_t now) {
    struct weir_events_program *p = &weir_events_program;
    int saved = errno;
    int patience;
    if (now >= weir_events_thread.retry_ns) {
        pthread_once(&p->once, weir_events_once);
        /* Whoever has the lock may never give it back: it may be a thread that a fork has left behind. */
        for (patience = 0; patience < 100; patience++) {
            if (pthread_mutex_trylock(&p->lock) == 0) {
                struct weir_events_map *map;
                weir_events_release();
                map = weir_events_find(now);
                if (map) weir_events_claim_in(map, now);
                pthread_mutex_unlock(&p->lock);
                break;
            }
            sched_yield();
        }
    }
    errno = saved;
}

/* This thread has entered the function. */
WEIR_EVENTS_HERE void weir_events_enter(unsigned function) {
    struct weir_events_thread *t = &weir_events_thread;
    if (function >= WEIR_EVENTS_FUNCTIONS || t->busy) return;
    if (++t->depth[function] > 1) return;
    t->busy = 1;
    t->since_ns[function] = weir_events_now();
    if (__builtin_expect(weir_events_is_mine(t), 1)) {
        weir_events_record(t, WEIR_EVENTS_ENTER, function, t->since_ns[function]);
    } else {
        weir_events_claim(t->since_ns[function]);
    }
    t->busy = 0;
}

/* This thread has left the function. */
WEIR_EVENTS_HERE void weir_events_leave(unsigned function) {
    struct weir_events_thread *t = &weir_events_thread;
    if (function >= WEIR_EVENTS_FUNCTIONS || t->busy || t->depth[function] == 0) return;
    if (--t->depth[function] > 0) return;
    t->busy = 1;
    if (weir_events_is_mine(t)) weir_events_record(t, WEIR_EVENTS_LEAVE, function, weir_events_now());
    t->busy = 0;
}

WEIR_EVENTS_HERE void weir_events_leave_at(const unsigned *function) {
    weir_events_leave(*function);
}

#define WEIR_EVENTS_NAME_(a, b) a##b
#define WEIR_EVENTS_NAME(a, b) WEIR_EVENTS_NAME_(a, b)
/* This thread is in the function until the end of the block, however it is left. */
#define WEIR_EVENTS_HOT(function)                                                               \
    __attribute__((cleanup(weir_events_leave_at), unused)) const unsigned WEIR_EVENTS_NAME(     \
        weir_events_hot_, __LINE__) = (weir_events_enter(function), (unsigned)(function))

#ifdef __cplusplus
}
#endif

#endif
