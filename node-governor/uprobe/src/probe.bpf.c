// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * Runs in the kernel when a thread of a watched program enters or leaves a hot function, and writes what it
 * saw into the lanes that `weir_events` describes. A lane has one writer: the thread that it belongs to.
 *
 * A call is known by its stack pointer and not by a count of calls. The stack grows down, so an event at or
 * above the stack pointer of a call says that the call is over, however it ended: by its return or by longjmp.
 * Returns that the kernel does not report (more than 64 nested ones) do no harm either.
 *
 * The end of a call is seen in one of two ways, see `Ends` in symbol.rs: `leave` runs after a return, `leave_at`
 * before each instruction that leaves the function.
 *
 * Whether a thread is inside a function is told by `since_ns` in its lane and nothing else: the governor sets it to
 * 0 where it finds that a call is over of which no event says so.
 *
 * No header of the kernel or of libbpf is needed. Renew the object with `cargo xtask probe`.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define inline_always static inline __attribute__((always_inline))

/* Numbers of helpers and maps: include/uapi/linux/bpf.h, which the kernel never changes. */
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static u64 (*bpf_get_current_task)(void) = (void *)35;
static long (*bpf_map_push_elem)(void *map, const void *value, u64 flags) = (void *)87;
static long (*bpf_map_pop_elem)(void *map, void *value) = (void *)88;
static long (*bpf_probe_read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static u64 (*bpf_get_attach_cookie)(void *ctx) = (void *)174;

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_STACK = 23 };
enum { ONLY_IF_ABSENT = 1, MMAPABLE = 1 << 10 };

struct map {
	u32 type, key_size, value_size, max_entries, map_flags;
};

#define FUNCTIONS 16
#define EVENT_ENTER 1
#define EVENT_LEAVE 2
#define NANOSECONDS_PER_TICK 10000000 /* of field 22 in /proc/PID/stat: USER_HZ is 100 */

/* Set by the loader before the program is checked by the kernel, so that they cost nothing. */
volatile const u32 lanes = 16;
volatile const u32 events_per_lane = 16;
volatile const u64 pid_namespace = 0;
/* Of `struct pt_regs` on this architecture, and what a return takes off the stack. */
volatile const u32 is_aarch64 = 0;

/*
 * The shared memory in pieces of 256 bytes: 16 of the header, one for each lane's head, then the events, 16 to a
 * piece. The loader says how many.
 */
#define PIECE 256
#define HEADER_PIECES 16
#define EVENTS_PER_PIECE 16

struct map SEC("maps") memory = { MAP_ARRAY, 4, PIECE, HEADER_PIECES, MMAPABLE };

struct head {
	u64 owner, thread_started, pid_namespace, unused_1[5];
	u64 written, core, unused_2[6];
	u64 since_ns[FUNCTIONS];
};

struct event {
	u64 time_ns, word;
};

/* What only the kernel side needs to know of a thread. */
struct thread {
	u32 lane;
	u32 entered; /* a bit for each function that it may be inside of */
	u64 stack[FUNCTIONS]; /* the stack pointer at entry of the outermost call */
	u64 back[FUNCTIONS]; /* what is there while the call can return; 0: the address that the kernel puts there */
};

struct map SEC("maps") threads = { MAP_HASH, 4, sizeof(struct thread), 1, 0 };
struct map SEC("maps") free_lanes = { MAP_STACK, 0, 4, 1, 0 };

enum { COUNT_NO_LANE, COUNT_ENDED_BY_STACK, COUNTS };
struct map SEC("maps") counts = { MAP_ARRAY, 4, 8, COUNTS, 0 };

inline_always void count(u32 which)
{
	u64 *value = bpf_map_lookup_elem(&counts, &which);
	if (value)
		__sync_fetch_and_add(value, 1);
}

/* A store that no earlier one may pass: plain stores are not ordered on every architecture. */
inline_always void store_release(u64 *to, u64 value)
{
	__sync_lock_test_and_set(to, value);
}

inline_always struct head *head_of(u32 lane)
{
	u32 piece = HEADER_PIECES + lane;
	return bpf_map_lookup_elem(&memory, &piece);
}

inline_always struct event *event_of(u32 lane, u64 number)
{
	u32 slot = number & (events_per_lane - 1);
	u32 piece = HEADER_PIECES + lanes + lane * (events_per_lane / EVENTS_PER_PIECE) + slot / EVENTS_PER_PIECE;
	struct event *events = bpf_map_lookup_elem(&memory, &piece);
	return events ? events + slot % EVENTS_PER_PIECE : 0;
}

/* What is read of the kernel's own; the loader puts in where this kernel has it. */
#define OF_KERNEL __attribute__((preserve_access_index))

struct xol_area {
	u64 vaddr;
} OF_KERNEL;

struct uprobes_state {
	struct xol_area *xol_area;
} OF_KERNEL;

struct mm_struct {
	struct uprobes_state uprobes_state;
} OF_KERNEL;

struct task_struct {
	u64 start_boottime;
	struct mm_struct *mm;
} OF_KERNEL;

#define READ(field)                                                                                                    \
	({                                                                                                             \
		typeof(field) value = 0;                                                                               \
		bpf_probe_read_kernel(&value, sizeof(value), &(field));                                                \
		value;                                                                                                 \
	})

inline_always u64 thread_started(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	return READ(task->start_boottime) / NANOSECONDS_PER_TICK;
}

inline_always u64 on_stack(u64 stack)
{
	u64 address = 0;
	bpf_probe_read_user(&address, sizeof(address), (void *)stack);
	return address;
}

/*
 * Whether a call that was entered with this stack pointer can still return: x86-64 has the return address on the
 * stack, where a call that comes after a jump out of this one writes its own.
 */
inline_always int can_return(u64 stack, u64 back)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct mm_struct *mm = READ(task->mm);
	struct xol_area *area = READ(mm->uprobes_state.xol_area);
	return is_aarch64 || on_stack(stack) == (back ?: READ(area->vaddr));
}

/* What was written before stays counted: the reader goes on from there. */
inline_always void own(struct head *head, u64 owner)
{
	for (u32 f = 0; f < FUNCTIONS; f++)
		head->since_ns[f] = 0;
	head->thread_started = thread_started();
	head->pid_namespace = pid_namespace;
	store_release(&head->owner, owner);
}

/* Takes a free lane for the thread. */
inline_always struct thread *claim(u32 id)
{
	struct thread thread = {};
	if (bpf_map_pop_elem(&free_lanes, &thread.lane)) {
		count(COUNT_NO_LANE);
		return 0;
	}
	if (bpf_map_update_elem(&threads, &id, &thread, ONLY_IF_ABSENT)) {
		bpf_map_push_elem(&free_lanes, &thread.lane, 0);
		count(COUNT_NO_LANE);
		return 0;
	}
	return bpf_map_lookup_elem(&threads, &id);
}

inline_always void release(u32 id)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	if (!thread)
		return;
	u32 lane = thread->lane;
	struct head *head = head_of(lane);
	if (head) {
		for (u32 f = 0; f < FUNCTIONS; f++)
			head->since_ns[f] = 0;
		head->thread_started = 0;
		head->pid_namespace = 0;
		store_release(&head->owner, 0);
	}
	bpf_map_delete_elem(&threads, &id);
	bpf_map_push_elem(&free_lanes, &lane, 0);
}

inline_always void write(struct thread *thread, struct head *head, u32 function, u64 kind, u64 now)
{
	u64 number = head->written;
	u64 core = bpf_get_smp_processor_id();
	struct event *event = event_of(thread->lane, number);
	if (!event)
		return;
	event->time_ns = now;
	store_release(&event->word, (u32)number | kind << 32 | (u64)function << 40 | (core & 0xffff) << 48);
	store_release(&head->since_ns[function & (FUNCTIONS - 1)], kind == EVENT_ENTER ? now : 0);
	head->core = core;
	store_release(&head->written, number + 1);
}

/* Ends each call that the stack pointer has left behind, and forgets those that are over already. */
static __attribute__((noinline)) void end_above(struct thread *thread, u64 stack, u64 now)
{
	struct head *head = head_of(thread->lane);
	if (!head)
		return;
	for (u32 f = 0; f < FUNCTIONS; f++) {
		if (!(thread->entered & 1u << f))
			continue;
		if (head->since_ns[f]) {
			if (stack < thread->stack[f])
				continue;
			write(thread, head, f, EVENT_LEAVE, now);
		}
		thread->entered &= ~(1u << f);
	}
}

/*
 * The cookie of a probe: the function's id in the low byte, whether instructions that leave are watched in the next,
 * the process in the high half or 0 for all.
 */
#define AT_INSTRUCTIONS 0x100

inline_always int is_meant(u64 cookie, u64 owner)
{
	u32 process = cookie >> 32;
	return !process || process == (u32)(owner >> 32);
}

/*
 * In assembler, because the compiler would choose the offset first and load then; the kernel's check wants the
 * offset in the load. It does not look at the load of the other architecture, which is never run.
 */
#define LOAD(value, from, offset) asm volatile("%0 = *(u64 *)(%1 + " #offset ")" : "=r"(value) : "r"(from))

inline_always u64 stack_pointer(void *registers)
{
	u64 stack;
	if (is_aarch64)
		LOAD(stack, registers, 248);
	else
		LOAD(stack, registers, 152);
	return stack;
}

SEC("uprobe/enter") int enter(void *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	u64 cookie = bpf_get_attach_cookie(ctx);
	if (!is_meant(cookie, id))
		return 0;
	u64 owner = id << 32 | id >> 32;
	u32 function = cookie & (FUNCTIONS - 1), tid = id;
	struct thread *thread = bpf_map_lookup_elem(&threads, &tid);
	if (!thread)
		thread = claim(tid);
	if (!thread)
		return 0;
	struct head *head = head_of(thread->lane);
	if (!head)
		return 0;
	/* New, or the governor took it for that of a dead thread. */
	if (head->owner != owner)
		own(head, owner);
	u64 stack = stack_pointer(ctx), now = bpf_ktime_get_ns();
	if (thread->entered) {
		u32 before = *(volatile u32 *)&thread->entered;
		end_above(thread, stack, now);
		/* A call from further down is one within another, or the other was jumped out of. */
		if (thread->entered & 1u << function) {
			if (can_return(thread->stack[function], thread->back[function]))
				return 0;
			thread->entered &= ~(1u << function);
			write(thread, head, function, EVENT_LEAVE, now);
		}
		if (*(volatile u32 *)&thread->entered != before)
			count(COUNT_ENDED_BY_STACK);
	}
	thread->entered |= 1u << function;
	thread->stack[function] = stack;
	thread->back[function] = cookie & AT_INSTRUCTIONS ? on_stack(stack) : 0;
	write(thread, head, function, EVENT_ENTER, now);
	return 0;
}

inline_always int ended(void *ctx, u32 taken_off)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct thread *thread = bpf_map_lookup_elem(&threads, &tid);
	if (!thread || !thread->entered)
		return 0;
	end_above(thread, stack_pointer(ctx) - taken_off, bpf_ktime_get_ns());
	return 0;
}

/* A return of x86-64 has taken the return address off the stack. */
SEC("uretprobe/leave") int leave(void *ctx)
{
	return ended(ctx, is_aarch64 ? 0 : 8);
}

SEC("uprobe/leave_at") int leave_at(void *ctx)
{
	return ended(ctx, 0);
}

SEC("raw_tp/sched_process_exit") int thread_exit(void *ctx __attribute__((unused)))
{
	release(bpf_get_current_pid_tgid());
	return 0;
}

/* A thread that becomes another program keeps no calls, and may take over the id of its process. */
SEC("raw_tp/sched_process_exec") int thread_exec(u64 *ctx)
{
	u32 old_id = ctx[1];
	release(bpf_get_current_pid_tgid());
	release(old_id);
	return 0;
}

/* The kernel opens its memory only to programs that may be had under the GPL, which is one of this file's two. */
const char licence[] SEC("license") = "GPL";

/* The sum of this file, by which an object that is out of date is known. */
const char made_of[] SEC("source") = SOURCE;
