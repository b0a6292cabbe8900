// SPDX-License-Identifier: Apache-2.0
// Functions that begin with different instructions. Reads COUNT a line, writes how long each takes in nanoseconds a
// call.
#include <stdio.h>
#include <time.h>

#define FUNCTION(name, first, last)                                                                                    \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" first "\n" last        \
		"\nret\n.size " #name ", .-" #name "\n");                                                              \
	void name(void);

FUNCTION(push, "push %rbp", "pop %rbp")
FUNCTION(marked_push, "endbr64\npush %rbp", "pop %rbp")
FUNCTION(nop5, ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00", "")
FUNCTION(marked, "endbr64\nxor %eax, %eax", "")
FUNCTION(sub, "sub $8, %rsp", "add $8, %rsp")
FUNCTION(plain, "push %rbp", "pop %rbp")

#ifdef UNWINDS
/* Tells whoever looks that exceptions may pass. */
void _Unwind_Resume(void *);
void (*volatile unwinds)(void *) = _Unwind_Resume;
#endif

static double nanoseconds(void (*function)(void), long count)
{
	struct timespec from, to;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (long i = 0; i < count; i++)
		function();
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	return ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / count;
}

int main(void)
{
	long count;
	while (scanf("%ld", &count) == 1) {
		printf("%f %f %f %f %f %f\n", nanoseconds(plain, count), nanoseconds(push, count),
		       nanoseconds(marked_push, count), nanoseconds(nop5, count), nanoseconds(marked, count),
		       nanoseconds(sub, count));
		fflush(stdout);
	}
	return 0;
}
