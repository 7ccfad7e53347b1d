/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Reports the system calls of the threads in `threads`, which threads join when their parent creates them and leave when
 * they exit. A call is one event at its end; each of its paths is an event before it, read when the call begins, because
 * another thread may change the memory and execve replaces it. User space puts them together (../ebpf/join.rs).
 */
#include "kernel.h"

/* The events are decoded in ../ebpf/event.rs: change both together. */
enum kind {
	CALL = 1,	/* a call returned */
	UNFINISHED = 2, /* the thread exited, or the request of io_uring was lost, before the call returned */
	PATH = 3,	/* a path of the call that the thread is making */
	FILE = 4,	/* the path of a mapped file in which a page fault follows; its names from the last to the first */
};

struct call {
	__u8 kind;
	__u8 missing;	/* paths that could not be read: 1 the first, 2 the second */
	__u16 number;	/* of the system call; URING | opcode for requests of io_uring; FAULT */
	__u32 thread;
	__u32 process;
	__u32 child;	/* the thread that the call created */
	__u64 begin_ns; /* CLOCK_MONOTONIC */
	__u64 end_ns;
	__u64 arguments[6];
	__u64 extra[2];
	__s64 result;
	__u64 cgroup; /* of the default hierarchy */
	__u64 waited_ns; /* between the end of the call before and this begin, the thread was blocked for so long */
};

#define URING 0x8000
#define FAULT 0x4000
#define PATH_BYTES 4096

struct path {
	__u8 kind;
	__u8 which; /* 1 the first, 2 the second; | OF_REQUEST for requests of io_uring */
	__u16 length;
	__u32 thread;
	__u64 begin_ns; /* of its call; with the thread, its identity */
	char text[PATH_BYTES];
};

#define PATH_HEADER 16
#define OF_REQUEST 0x10

/* A thread that is recorded. The loader reads and writes it as sixteen 64-bit numbers: change ../ebpf/kernel.rs as well. */
struct thread {
	__u64 begin_ns;
	__u64 arguments[6];
	__u64 extra[2];
	__u32 process;
	__u32 child;
	__u32 thread; /* its number when the call began: execve changes it */
	__u16 number;
	__u8 state;
	__u8 missing;
	__u64 cgroup;
	__u64 waited_ns; /* since the end of the last recorded call, without the present one */
	__u64 blocked_ns; /* when it began to wait; 0 if it does not */
	__u64 fault_ns; /* when its page fault began; 0 outside of page faults */
	__u64 fault_at; /* its address; the processor's error code in the bits below the page */
};

enum state {
	IS_CALLING = 1,	      /* the thread is making a recorded call */
	AWAITS_EXEC = 2,      /* it will become the command: nothing before its first successful execve counts */
};

/* What a call needs beyond its arguments, for each number. 0: not recorded. */
#define RECORDED 0x1u
#define FIRST_PATH(what) ((what) >> 4 & 7u)  /* 1 + the index of the argument */
#define SECOND_PATH(what) ((what) >> 8 & 7u)
#define EXTRA(what) ((what) >> 12 & 15u)
enum extra {
	IOVEC = 1,	/* extra[0]: the bytes of all buffers, arguments 1 and 2 */
	OPEN_HOW = 2,	/* extra[0], extra[1]: flags and mode, argument 2; which becomes the flags of resolving */
	CLONE_ARGS = 3, /* extra[0]: flags and exit signal, argument 0 */
	OFFSET_1 = 4,	/* extra[0], extra[1]: the offsets that arguments 1 and 3 point to */
	OFFSET_2 = 5,	/* extra[0]: the offset that argument 2 points to */
	PAIR_0 = 6,	/* extra[0]: the two descriptors that argument 0 points to, after the call */
	PAIR_3 = 7,	/* extra[0]: the same for argument 3 */
	MAPPING = 8,	/* recorded only if it maps a file */
	EXEC = 9,	/* execve */
	RESULT_PATH = 10, /* the first path is in argument 0 after the call */
	SOCKET_NAME = 11, /* the first path is in the address of a Unix socket, arguments 1 and 2 */
	STAT_1 = 13,	/* extra[0]: the mode in the `struct stat` that argument 1 points to, after the call */
	STAT_2 = 14,	/* the same for argument 2 */
	STATX_4 = 15,	/* the same for the `struct statx` of argument 4 */
	REQUEST = 12,	/* arguments 2 to 5, extra[0]: what a request of ioctl points to; extra[1]: 0 if that was read */
};
#define NO_OFFSET (~0ull)

#define NUMBERS 512
const volatile __u16 what_of[NUMBERS] = {};
const volatile __u64 wake_bytes = 0;
/* The thread that seeks to this position starts the command. */
const volatile __u64 signal_position = 0;
const volatile __u32 seek_number = 0;
/* Every process is recorded, apart from the one that seeks to that position. */
const volatile __u32 records_all = 0;

/* What could not be recorded; ../ebpf/kernel.rs has the same indices. */
enum counter {
	LOST_EVENTS = 0,    /* the ring had no room */
	LOST_THREADS = 1,   /* the table of threads had no room */
	UNKNOWN_PATHS = 2,  /* the memory of a path was not readable */
	COMPAT_CALLS = 3,   /* of programs for a 32-bit processor */
	FIXED_FILES = 4,    /* requests of io_uring on registered files: which file is unknown */
	LOST_FAULTS = 5,    /* page faults while the process changed its mappings */
	FILES = 6,	    /* mapped files so far: each has a number */
	/* The thread that starts the command; 0 before and after. Here because the loader knows one variable. */
	SPAWNER = 7,
	/* The process of the recorder, if every other one is recorded. */
	RECORDER = 8,
	COUNTERS = 9,
};
__u64 counters[COUNTERS] = {};

struct {
	int (*type)[BPF_MAP_TYPE_RINGBUF];
	int (*max_entries)[1 << 24];
} events SEC(".maps");

struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	int (*max_entries)[1 << 15];
	__u32 *key;
	struct thread *value;
} threads SEC(".maps");

/* Requests of io_uring in flight, by address. */
struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	int (*max_entries)[1 << 16];
	__u64 *key;
	struct call *value;
} requests SEC(".maps");

/* Where paths are assembled: system calls in the first, requests of io_uring in the second, mapped files in the third. */
struct {
	int (*type)[BPF_MAP_TYPE_PERCPU_ARRAY];
	int (*max_entries)[3];
	__u32 *key;
	struct path *value;
} scratch SEC(".maps");

#define READ(to, pointer, type, field) bpf_probe_read_kernel(&(to), sizeof(to), &((struct type *)(pointer))->field)

/* Functions of more than five arguments cannot be called. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

static inline void count(enum counter counter)
{
	__sync_fetch_and_add(&counters[counter], 1);
}

/* Wakes the recorder when the ring is filling up; otherwise it comes many times a second. */
static inline __u64 wakeup(void)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) >= wake_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static inline struct call *reserve(void)
{
	struct call *c = bpf_ringbuf_reserve(&events, sizeof(*c), 0);

	if (!c)
		count(LOST_EVENTS);
	return c;
}

/* Reports a path of the user (`is_user`) or of the kernel. Returns whether it could be read. */
static ALWAYS_INLINE int report_text(__u32 slot, const void *address, __u32 room, int is_user, __u8 which, __u32 thread,
			      __u64 begin_ns)
{
	struct path *p = bpf_map_lookup_elem(&scratch, &slot);
	long length;

	if (!p)
		return 0;
	length = is_user ? bpf_probe_read_user_str(p->text, room, address)
			 : bpf_probe_read_kernel_str(p->text, room, address);
	if (length <= 0 || length > PATH_BYTES)
		return 0;
	p->kind = PATH;
	p->which = which;
	p->length = length - 1;
	p->thread = thread;
	p->begin_ns = begin_ns;
	if (bpf_ringbuf_output(&events, p, PATH_HEADER + length, wakeup()))
		count(LOST_EVENTS);
	return 1;
}

static ALWAYS_INLINE int report_path(__u32 slot, const void *address, int is_user, __u8 which, __u32 thread, __u64 begin_ns)
{
	return report_text(slot, address, PATH_BYTES, is_user, which, thread, begin_ns);
}

static inline __u64 argument(struct thread *t, __u32 one_based)
{
	switch (one_based) {
	case 1:
		return t->arguments[0];
	case 2:
		return t->arguments[1];
	case 3:
		return t->arguments[2];
	case 4:
		return t->arguments[3];
	default:
		return t->arguments[4];
	}
}

/* Reports the paths in `wanted` (1 the first, 2 the second); returns those that could not be read. NULL is no path. */
static inline __u8 report_paths(struct thread *t, __u32 what, __u8 wanted)
{
	__u8 missing = 0;

	if (FIRST_PATH(what) && wanted & 1) {
		__u64 address = argument(t, FIRST_PATH(what));

		if (address && !report_path(0, (void *)address, 1, 1, t->thread, t->begin_ns))
			missing |= 1;
	}
	if (SECOND_PATH(what) && wanted & 2) {
		__u64 address = argument(t, SECOND_PATH(what));

		if (address && !report_path(0, (void *)address, 1, 2, t->thread, t->begin_ns))
			missing |= 2;
	}
	return missing;
}

#define AF_UNIX 1
/* The size of `struct sockaddr_un`. The name ends with the address, or with a zero before. */
#define MAX_ADDRESS 110

/* Reports the path of a Unix socket as the first path; returns 1 if it could not be read. Abstract names are no paths. */
static inline __u8 report_socket_name(struct thread *t)
{
	__u32 bytes = t->arguments[2];
	struct {
		__u16 family;
		char first;
		char rest;
	} name = {};

	if (bytes < 3 || bytes > MAX_ADDRESS)
		return 0;
	if (bpf_probe_read_user(&name, 3, (void *)t->arguments[1]))
		return 1;
	if (name.family != AF_UNIX || !name.first)
		return 0;
	return !report_text(0, (void *)(t->arguments[1] + 2), (bytes - 1) & 127, 1, 1, t->thread, t->begin_ns);
}

struct iovec {
	__u64 base;
	__u64 length;
};

/* The kernel takes at most 1024 buffers; more fail with EINVAL. */
#define IOVECS 1024

static inline __u64 total_bytes(const struct iovec *buffers, __u64 number)
{
	__u64 total = 0;
	struct iovec one;

	for (__u32 i = 0; i < IOVECS && i < number; i++) {
		if (bpf_probe_read_user(&one, sizeof(one), buffers + i))
			return NO_OFFSET;
		total += one.length;
	}
	return total;
}

/* Of linux/fs.h. */
#define FICLONERANGE 0x4020940du
#define FIDEDUPERANGE 0xc0189436u

static inline void read_extra(struct thread *t, __u32 extra)
{
	__u64 address;

	t->extra[0] = NO_OFFSET;
	t->extra[1] = NO_OFFSET;
	switch (extra) {
	case IOVEC:
		t->extra[0] = total_bytes((void *)t->arguments[1], t->arguments[2]);
		break;
	case OPEN_HOW:
		address = t->arguments[2];
		if (bpf_probe_read_user(t->extra, 16, (void *)address) ||
		    bpf_probe_read_user(&t->arguments[2], 8, (void *)address + 16))
			t->extra[0] = t->extra[1] = NO_OFFSET;
		break;
	case REQUEST:
		address = t->arguments[2];
		switch ((__u32)t->arguments[1]) {
		case FICLONERANGE:
			t->extra[1] = bpf_probe_read_user(&t->arguments[2], 32, (void *)address) ? NO_OFFSET : 0;
			break;
		case FIDEDUPERANGE:
			/* The range of the source, the number of destinations, and the first of these. */
			if (!bpf_probe_read_user(&t->arguments[2], 32, (void *)address) &&
			    !bpf_probe_read_user(t->extra, 8, (void *)address + 32))
				t->extra[1] = 0;
			break;
		}
		break;
	case CLONE_ARGS:
		/* The signal at the end of the child is a field of its own; `clone` has both in one word. */
		if (bpf_probe_read_user(&t->extra[0], 8, (void *)t->arguments[0]) ||
		    bpf_probe_read_user(&t->extra[1], 8, (void *)t->arguments[0] + 32))
			t->extra[0] = NO_OFFSET;
		else
			t->extra[0] |= t->extra[1];
		t->extra[1] = NO_OFFSET;
		break;
	case OFFSET_1:
		if (!t->arguments[1] || bpf_probe_read_user(t->extra, 8, (void *)t->arguments[1]))
			t->extra[0] = NO_OFFSET;
		if (!t->arguments[3] || bpf_probe_read_user(t->extra + 1, 8, (void *)t->arguments[3]))
			t->extra[1] = NO_OFFSET;
		break;
	case OFFSET_2:
		if (!t->arguments[2] || bpf_probe_read_user(t->extra, 8, (void *)t->arguments[2]))
			t->extra[0] = NO_OFFSET;
		break;
	}
}

/* Where the mode is in `struct stat` and `struct statx`. */
#if defined(__TARGET_ARCH_x86_64)
#define STAT_MODE_AT 24
#else
#define STAT_MODE_AT 16
#endif
#define STATX_MODE_AT 28

static inline void read_mode(struct thread *t, __u64 address, __u32 at, __u32 bytes)
{
	__u64 mode = 0;

	t->extra[0] = bpf_probe_read_user(&mode, bytes, (void *)address + at) ? NO_OFFSET : mode;
}

static inline int is_compat(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

#if defined(__TARGET_ARCH_x86_64)
	return task->thread_info.status & TS_COMPAT;
#else
	return task->thread_info.flags >> ARM64_TIF_32BIT & 1;
#endif
}

#define MAP_ANONYMOUS 0x20

/* The recorder announces itself, or the command that it starts. */
static inline int is_signal(struct pt_regs *regs, __u64 number)
{
#if defined(__TARGET_ARCH_x86_64)
	return number == seek_number && regs->si == signal_position;
#else
	return number == seek_number && regs->regs[1] == signal_position;
#endif
}

/* A thread that existed before the recording of all processes makes its first call. */
static inline struct thread *found_thread(__u32 id, __u32 process)
{
	struct thread found = {.process = process};

	if (bpf_map_update_elem(&threads, &id, &found, 0)) {
		count(LOST_THREADS);
		return 0;
	}
	return bpf_map_lookup_elem(&threads, &id);
}

SEC("tp_btf/sys_enter")
int call_begins(__u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	__u64 number = ctx[1], ids = bpf_get_current_pid_tgid();
	__u32 id = (__u32)ids, process = ids >> 32, what;
	struct thread *t = bpf_map_lookup_elem(&threads, &id);

	if (records_all) {
		if (is_signal(regs, number))
			counters[RECORDER] = process;
		if (process == counters[RECORDER])
			return 0;
	} else if (!t) {
		if (is_signal(regs, number))
			counters[SPAWNER] = id;
		return 0;
	}
	if (t) {
		t->state &= ~IS_CALLING;
		/* Of a page fault that failed, there was no end. */
		t->fault_ns = 0;
	}
	if (is_compat()) {
		count(COMPAT_CALLS);
		return 0;
	}
	if (number >= NUMBERS)
		return 0;
	what = what_of[number & (NUMBERS - 1)];
	if (!(what & RECORDED))
		return 0;
	if (!t)
		t = found_thread(id, process);
	if (!t || (t->state & AWAITS_EXEC && EXTRA(what) != EXEC))
		return 0;
#if defined(__TARGET_ARCH_x86_64)
	t->arguments[0] = regs->di;
	t->arguments[1] = regs->si;
	t->arguments[2] = regs->dx;
	t->arguments[3] = regs->r10;
	t->arguments[4] = regs->r8;
	t->arguments[5] = regs->r9;
#else
	t->arguments[0] = regs->regs[0];
	t->arguments[1] = regs->regs[1];
	t->arguments[2] = regs->regs[2];
	t->arguments[3] = regs->regs[3];
	t->arguments[4] = regs->regs[4];
	t->arguments[5] = regs->regs[5];
#endif
	if (EXTRA(what) == MAPPING && (t->arguments[3] & MAP_ANONYMOUS || (__s32)t->arguments[4] < 0))
		return 0;
	t->number = number;
	t->thread = id;
	t->child = 0;
	t->missing = 0;
	t->cgroup = bpf_get_current_cgroup_id();
	if (EXTRA(what))
		read_extra(t, EXTRA(what));
	/* User space reads both at any time: a thread that is calling has the time of this call. */
	*(volatile __u64 *)&t->begin_ns = bpf_ktime_get_ns();
	*(volatile __u8 *)&t->state |= IS_CALLING;
	if (FIRST_PATH(what) | SECOND_PATH(what))
		t->missing = report_paths(t, what, 3);
	else if (EXTRA(what) == SOCKET_NAME)
		t->missing = report_socket_name(t);
	return 0;
}

static inline void fill(struct call *c, struct thread *t, __u8 kind)
{
	c->kind = kind;
	c->missing = t->missing;
	c->number = t->number;
	c->thread = t->thread;
	c->process = t->process;
	c->child = t->child;
	c->begin_ns = t->begin_ns;
	c->cgroup = t->cgroup;
	c->waited_ns = t->waited_ns;
	__builtin_memcpy(c->arguments, t->arguments, sizeof(c->arguments));
	__builtin_memcpy(c->extra, t->extra, sizeof(c->extra));
}

SEC("tp_btf/sys_exit")
int call_ends(__u64 *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	__s64 result = ctx[1];
	__u32 id = (__u32)bpf_get_current_pid_tgid(), what, extra;
	struct thread *t = bpf_map_lookup_elem(&threads, &id);
	struct call *c;

	if (!t || !(t->state & IS_CALLING))
		return 0;
	what = what_of[t->number & (NUMBERS - 1)];
	extra = EXTRA(what);
	if (t->state & AWAITS_EXEC) {
		if (result) {
			t->state &= ~IS_CALLING;
			return 0;
		}
		t->state &= ~AWAITS_EXEC;
	}
	if (t->missing) {
		/* The kernel has read the path, so its page is in memory now. After execve it is another program's. */
		if (extra != EXEC || result)
			t->missing = extra == SOCKET_NAME ? report_socket_name(t) : report_paths(t, what, t->missing);
		if (t->missing)
			count(UNKNOWN_PATHS);
	}
	if (extra == PAIR_0 && !result)
		bpf_probe_read_user(t->extra, 8, (void *)t->arguments[0]);
	else if (extra == PAIR_3 && !result)
		bpf_probe_read_user(t->extra, 8, (void *)t->arguments[3]);
	else if (extra == STAT_1 && !result)
		read_mode(t, t->arguments[1], STAT_MODE_AT, 4);
	else if (extra == STAT_2 && !result)
		read_mode(t, t->arguments[2], STAT_MODE_AT, 4);
	else if (extra == STATX_4 && !result)
		read_mode(t, t->arguments[4], STATX_MODE_AT, 2);
	else if (extra == RESULT_PATH && result > 0)
		report_path(0, (void *)t->arguments[0], 1, 1, t->thread, t->begin_ns);
	c = reserve();
	if (c) {
		fill(c, t, CALL);
		c->end_ns = now;
		c->result = result;
		bpf_ringbuf_submit(c, wakeup());
	}
	t->waited_ns = 0;
	t->blocked_ns = 0;
	/* After the event, so that a call is in the ring or in flight at any time. */
	*(volatile __u8 *)&t->state &= ~IS_CALLING;
	return 0;
}

SEC("tp_btf/sched_process_fork")
int thread_begins(__u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	__u32 parent_id = parent->pid, child_id = child->pid;
	struct thread *t = bpf_map_lookup_elem(&threads, &parent_id);
	struct thread begun = {.process = child->tgid};

	if (!t && (parent_id != counters[SPAWNER] || child->tgid == parent->tgid))
		return 0;
	if (t) {
		t->child = child_id;
		begun.state = t->state & AWAITS_EXEC;
	} else {
		counters[SPAWNER] = 0;
		begun.state = AWAITS_EXEC;
	}
	if (bpf_map_update_elem(&threads, &child_id, &begun, 0))
		count(LOST_THREADS);
	return 0;
}

/* A program replaces another one. The path is read again if its page was not in memory, as its memory is gone at the end of
 * the call. Of a process with several threads, the one that calls execve takes the number of the first. */
SEC("tp_btf/sched_process_exec")
int program_begins(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct linux_binprm *program = (void *)ctx[2];
	__u32 before = ctx[1], now = task->pid;
	struct thread *t = bpf_map_lookup_elem(&threads, &before), moved;

	if (!t)
		return 0;
	if (t->missing && report_path(0, program->filename, 0, 1, t->thread, t->begin_ns))
		t->missing = 0;
	if (before == now)
		return 0;
	moved = *t;
	if (bpf_map_update_elem(&threads, &now, &moved, 0))
		count(LOST_THREADS);
	bpf_map_delete_elem(&threads, &before);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int thread_ends(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	__u32 id = task->pid;
	struct thread *t = bpf_map_lookup_elem(&threads, &id);
	struct call *c;

	if (!t)
		return 0;
	if (t->state & IS_CALLING && !(t->state & AWAITS_EXEC)) {
		c = reserve();
		if (c) {
			fill(c, t, UNFINISHED);
			c->end_ns = 0;
			c->result = 0;
			bpf_ringbuf_submit(c, wakeup());
		}
	}
	bpf_map_delete_elem(&threads, &id);
	return 0;
}

/* A thread is blocked, or goes on. Time within a recorded call is not counted: the call has its duration. */
SEC("tp_btf/sched_switch")
int processor_changes(__u64 *ctx)
{
	struct task_struct *before = (void *)ctx[1], *after = (void *)ctx[2];
	__u32 before_id = before->pid, after_id = after->pid, is_preempted = ctx[0], state = ctx[3];
	struct thread *t;

	if (!is_preempted && state) {
		t = bpf_map_lookup_elem(&threads, &before_id);
		if (t && !(t->state & IS_CALLING) && !t->fault_ns)
			t->blocked_ns = bpf_ktime_get_ns();
	}
	t = bpf_map_lookup_elem(&threads, &after_id);
	if (t && t->blocked_ns) {
		t->waited_ns += bpf_ktime_get_ns() - t->blocked_ns;
		t->blocked_ns = 0;
	}
	return 0;
}

#include "faults.h"

/* The opcodes of io_uring, which are a stable ABI. */
enum opcode {
	OP_READV = 1,
	OP_WRITEV = 2,
	OP_FSYNC = 3,
	OP_READ_FIXED = 4,
	OP_WRITE_FIXED = 5,
	OP_SYNC_FILE_RANGE = 8,
	OP_FALLOCATE = 17,
	OP_OPENAT = 18,
	OP_CLOSE = 19,
	OP_STATX = 21,
	OP_READ = 22,
	OP_WRITE = 23,
	OP_FADVISE = 24,
	OP_OPENAT2 = 28,
	OP_SPLICE = 30,
	OP_RENAMEAT = 35,
	OP_UNLINKAT = 36,
	OP_MKDIRAT = 37,
	OP_SYMLINKAT = 38,
	OP_LINKAT = 39,
	OP_FSETXATTR = 41,
	OP_SETXATTR = 42,
	OP_FTRUNCATE = 55,
	OP_READV_FIXED = 60,
	OP_WRITEV_FIXED = 61,
};

#define REQ_F_FIXED_FILE 1u

static inline void uring_path(struct call *c, struct filename *name, __u8 which)
{
	const char *text = 0;

	if (!name || READ(text, name, filename, name) || !report_path(1, text, 0, which | OF_REQUEST, c->thread, c->begin_ns)) {
		c->missing |= which;
		count(UNKNOWN_PATHS);
	}
}

/* The parameters: arguments[0] descriptor, [1] second descriptor, [2] offset, [3] length, [4] flags, [5] mode. */
static inline int uring_arguments(struct call *c, struct io_kiocb *req)
{
	struct filename *name = 0, *name2 = 0;
	__s32 fd = 0, fd2 = 0, flags = 0, mode = 0;
	__s64 offset = 0, length = 0;
	__u64 address = 0;
	__u32 len = 0;
	__u16 short_mode = 0;

	switch (c->number & 0xff) {
	case OP_READV:
	case OP_WRITEV:
	case OP_READV_FIXED:
	case OP_WRITEV_FIXED:
		READ(offset, req, io_rw, kiocb.ki_pos);
		READ(address, req, io_rw, addr);
		READ(len, req, io_rw, len);
		READ(flags, req, io_rw, flags);
		c->arguments[2] = offset;
		c->arguments[3] = total_bytes((void *)address, len);
		c->arguments[4] = flags;
		return 1;
	case OP_READ:
	case OP_WRITE:
	case OP_READ_FIXED:
	case OP_WRITE_FIXED:
		READ(offset, req, io_rw, kiocb.ki_pos);
		READ(len, req, io_rw, len);
		READ(flags, req, io_rw, flags);
		c->arguments[2] = offset;
		c->arguments[3] = len;
		c->arguments[4] = flags;
		return 1;
	case OP_SPLICE:
		/* From arguments[0] at arguments[2], to arguments[1] at arguments[5]. */
		READ(fd2, req, io_splice, splice_fd_in);
		READ(offset, req, io_splice, off_in);
		READ(length, req, io_splice, len);
		READ(flags, req, io_splice, flags);
		c->arguments[1] = c->arguments[0];
		c->arguments[0] = fd2;
		c->arguments[2] = offset;
		c->arguments[3] = length;
		c->arguments[4] = (__u32)flags;
		READ(offset, req, io_splice, off_out);
		c->arguments[5] = offset;
		return 1;
	/* Their names and values are not recorded, nor is the path. */
	case OP_FSETXATTR:
	case OP_SETXATTR:
		return 1;
	case OP_FSYNC:
	case OP_SYNC_FILE_RANGE:
	case OP_FALLOCATE:
		READ(offset, req, io_sync, off);
		READ(length, req, io_sync, len);
		READ(flags, req, io_sync, flags);
		READ(mode, req, io_sync, mode);
		c->arguments[2] = offset;
		c->arguments[3] = length;
		c->arguments[4] = (c->number & 0xff) == OP_FALLOCATE ? mode : flags;
		return 1;
	case OP_OPENAT:
	case OP_OPENAT2:
		READ(fd, req, io_open, dfd);
		READ(name, req, io_open, filename);
		READ(c->arguments[4], req, io_open, how.flags);
		READ(c->arguments[5], req, io_open, how.mode);
		c->arguments[0] = fd;
		uring_path(c, name, 1);
		return 1;
	case OP_CLOSE:
		READ(fd, req, io_close, fd);
		c->arguments[0] = fd;
		return 1;
	case OP_STATX:
		READ(fd, req, io_statx, dfd);
		READ(name, req, io_statx, filename);
		READ(flags, req, io_statx, flags);
		c->arguments[0] = fd;
		c->arguments[4] = flags;
		uring_path(c, name, 1);
		return 1;
	case OP_FADVISE:
		READ(c->arguments[2], req, io_fadvise, offset);
		READ(c->arguments[3], req, io_fadvise, len);
		READ(flags, req, io_fadvise, advice);
		c->arguments[4] = flags;
		return 1;
	case OP_RENAMEAT:
		READ(fd, req, io_rename, old_dfd);
		READ(fd2, req, io_rename, new_dfd);
		READ(name, req, io_rename, oldpath);
		READ(name2, req, io_rename, newpath);
		READ(flags, req, io_rename, flags);
		c->arguments[0] = fd;
		c->arguments[1] = fd2;
		c->arguments[4] = flags;
		uring_path(c, name, 1);
		uring_path(c, name2, 2);
		return 1;
	case OP_LINKAT:
	case OP_SYMLINKAT:
		READ(fd, req, io_link, old_dfd);
		READ(fd2, req, io_link, new_dfd);
		READ(name, req, io_link, oldpath);
		READ(name2, req, io_link, newpath);
		READ(flags, req, io_link, flags);
		c->arguments[0] = fd;
		c->arguments[1] = fd2;
		c->arguments[4] = flags;
		uring_path(c, name, 1);
		uring_path(c, name2, 2);
		return 1;
	case OP_UNLINKAT:
		READ(fd, req, io_unlink, dfd);
		READ(name, req, io_unlink, filename);
		READ(flags, req, io_unlink, flags);
		c->arguments[0] = fd;
		c->arguments[4] = flags;
		uring_path(c, name, 1);
		return 1;
	case OP_MKDIRAT:
		READ(fd, req, io_mkdir, dfd);
		READ(name, req, io_mkdir, filename);
		READ(short_mode, req, io_mkdir, mode);
		c->arguments[0] = fd;
		c->arguments[5] = short_mode;
		uring_path(c, name, 1);
		return 1;
	case OP_FTRUNCATE:
		READ(length, req, io_ftrunc, len);
		c->arguments[3] = length;
		return 1;
	}
	return 0;
}

/* The request has been read from the ring and is about to be executed, or to wait for one before it. */
SEC("tp_btf/io_uring_submit_req")
int request_begins(__u64 *ctx)
{
	struct io_kiocb *req = (void *)ctx[0];
	__u64 ids = bpf_get_current_pid_tgid(), key = (__u64)req;
	__u32 id = (__u32)ids, process = ids >> 32;
	struct thread *t = bpf_map_lookup_elem(&threads, &id);
	struct call *before, *c, begun = {.kind = CALL};

	if (!t) {
		/* A thread of the kernel that polls the ring belongs to the process. */
		id = process;
		t = bpf_map_lookup_elem(&threads, &id);
		if (!t && (!records_all || process == counters[RECORDER]))
			return 0;
	}
	if (t && t->state & AWAITS_EXEC)
		return 0;
	/* Requests without a completion (IOSQE_CQE_SKIP_SUCCESS) end unseen; their memory is used again. */
	before = bpf_map_lookup_elem(&requests, &key);
	if (before) {
		c = reserve();
		if (c) {
			*c = *before;
			c->kind = UNFINISHED;
			bpf_ringbuf_submit(c, wakeup());
		}
		bpf_map_delete_elem(&requests, &key);
	}
	begun.number = URING | req->opcode;
	begun.thread = id;
	begun.process = process;
	begun.extra[0] = (req->flags & REQ_F_FIXED_FILE);
	begun.arguments[0] = (__s64)req->cqe.fd;
	begun.cgroup = bpf_get_current_cgroup_id();
	begun.begin_ns = bpf_ktime_get_ns();
	if (!uring_arguments(&begun, req))
		return 0;
	if (begun.extra[0])
		count(FIXED_FILES);
	if (bpf_map_update_elem(&requests, &key, &begun, 0))
		count(LOST_EVENTS);
	return 0;
}

static inline int request_ends(__u64 key, __s32 result)
{
	__u64 now = bpf_ktime_get_ns();
	struct call *begun = bpf_map_lookup_elem(&requests, &key), *c;

	if (!begun)
		return 0;
	c = reserve();
	if (c) {
		*c = *begun;
		c->end_ns = now;
		c->result = result;
		bpf_ringbuf_submit(c, wakeup());
	}
	bpf_map_delete_elem(&requests, &key);
	return 0;
}

/* The tracepoint passes the completion (since Linux 6.15), or its parts. The loader takes the one that fits. */
SEC("tp_btf/io_uring_complete")
int request_ends_with_completion(__u64 *ctx)
{
	struct io_uring_cqe *completion = (void *)ctx[2];

	return request_ends(ctx[1], completion->res);
}

SEC("tp_btf/io_uring_complete")
int request_ends_with_result(__u64 *ctx)
{
	return request_ends(ctx[1], (__s32)ctx[3]);
}

/* Some helpers require a GPL-compatible program; the kernel accepts this licence string as one. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
