// SPDX-License-Identifier: Apache-2.0
// Does what it reads, a line each, and says so. Threads of `calls` stay until the end.
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef IN_LIBRARY
long hot(long depth);
#else
#ifdef HIDDEN
static
#endif
__attribute__((noinline, noclone)) long hot(long depth)
{
	volatile long frame = depth;
	if (depth > 0)
		frame += hot(depth - 1);
	return frame;
}
#endif

/* Becomes another program, or two, while it is inside. */
__attribute__((noinline, noclone)) long becomer(char **arguments)
{
	if (*arguments)
		execv("/proc/self/exe", arguments);
	else if (!fork())
		_exit(0);
	return wait(0);
}

static jmp_buf out;

__attribute__((noinline, noclone)) long jumper(long depth)
{
	volatile long frame = depth;
	if (depth < 0)
		return frame;
	if (depth == 0)
		longjmp(out, 1);
	frame += jumper(depth - 1);
	return frame;
}

__attribute__((noinline, noclone)) long stayer(void)
{
	puts("done");
	fflush(stdout);
	for (;;)
		pause();
}

/* Calls it from further down the stack. */
__attribute__((noinline, noclone)) long below(long depth)
{
	char room[4096];
	__asm__ volatile("" : : "r"(room) : "memory");
	long sum = jumper(depth);
	__asm__ volatile("" : : "r"(room) : "memory");
	return sum;
}

static long count;

static void *run(void *unused)
{
	long sum = 0;
	for (long i = 0; i < count; i++)
		sum += hot(0);
	return (void *)sum;
}

/* A thread that has done its calls and is not gone. */
static pthread_barrier_t called;

static void *run_and_stay(void *unused)
{
	run(unused);
	pthread_barrier_wait(&called);
	for (;;)
		pause();
}

int main(void)
{
	char line[80];
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		int threads, depth;
		if (sscanf(line, "calls %d %ld", &threads, &count) == 2) {
			pthread_barrier_init(&called, 0, threads + 1);
			for (int i = 0; i < threads; i++) {
				pthread_t thread;
				pthread_create(&thread, 0, run_and_stay, 0);
			}
			pthread_barrier_wait(&called);
		} else if (sscanf(line, "short %d %ld", &threads, &count) == 2) {
			for (int i = 0; i < threads; i++) {
				pthread_t thread;
				pthread_create(&thread, 0, run, 0);
				pthread_join(thread, 0);
			}
		} else if (sscanf(line, "hammer %d", &threads) == 1) {
			count = 1L << 60;
			for (int i = 0; i < threads; i++) {
				pthread_t thread;
				pthread_create(&thread, 0, run, 0);
			}
		} else if (sscanf(line, "recurse %d", &depth) == 1) {
			hot(depth);
		} else if (sscanf(line, "jump %d", &depth) == 1) {
			if (!setjmp(out))
				jumper(depth);
		} else if (sscanf(line, "return %d", &depth) == 1) {
			for (int i = 0; i < depth; i++)
				jumper(-1);
		} else if (sscanf(line, "below %d", &depth) == 1) {
			for (int i = 0; i < depth; i++)
				below(-1);
		} else if (!strcmp(line, "fork\n")) {
			becomer((char *[]){ 0 });
		} else if (!strcmp(line, "exec\n")) {
			becomer((char *[]){ "hot", 0 });
		} else {
			stayer();
		}
		puts("done");
		fflush(stdout);
	}
	return 0;
}
