/* SPDX-License-Identifier: Apache-2.0
 * Goes through all that the header can do, a step for each line that it reads: tests/program/c.rs. */
#include "weir_events.h"

#include <signal.h>
#include <sys/wait.h>

void in_other_file(void);

static void step(const char *now) {
    char line[16];
    printf("%s\n", now);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) exit(1);
}

static void *spin(void *unused) {
    int i;
    for (i = 0; i < 40; i++) {
        WEIR_EVENTS_HOT(7);
        __asm__ volatile("");
    }
    return unused;
}

static void nested(void) {
    WEIR_EVENTS_HOT(3);
    {
        WEIR_EVENTS_HOT(3);
        in_other_file();
    }
    weir_events_enter(16); /* no such function: nothing */
    weir_events_enter(4);
    step("in");
    weir_events_leave(4);
    weir_events_leave(4); /* one too many: nothing */
}

int main(void) {
    pthread_t threads[3];
    pid_t child;
    int pipes[2];
    char byte = 0;
    int i;

    nested();
    step("out");

    for (i = 0; i < 3; i++) {
        if (pthread_create(&threads[i], 0, spin, 0)) return 2;
    }
    for (i = 0; i < 3; i++) pthread_join(threads[i], 0);
    step("threads");

    weir_events_enter(3);
    if (pipe(pipes)) return 3;
    child = fork();
    if (child == 0) {
        weir_events_enter(9);
        if (write(pipes[1], &byte, 1) != 1) return 4;
        for (;;) pause();
    }
    if (read(pipes[0], &byte, 1) != 1) return 5;
    step("child");

    kill(child, SIGKILL);
    waitpid(child, 0, 0);
    step("killed");

    weir_events_enter(4);
    step("again");
    weir_events_leave(4);
    weir_events_leave(3);
    weir_events_release();
    return 0;
}
