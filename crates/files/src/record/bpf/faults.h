/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Page faults in mapped files: the only thing that the kernel sees of accesses to them. A fault begins with the exception and
 * ends when the kernel accounts for it. A part of calls.bpf.c.
 */
#ifndef IOSONAR_FILES_FAULTS_H
#define IOSONAR_FILES_FAULTS_H

/* Bits of the error code on x86-64. */
#define PF_PROT 1u
#define PF_WRITE 2u
#define PF_INSTR 16u

/* enum fault_flag, enum vm_fault_reason, VM_SHARED and SB_NOUSER of the kernel. */
#define FAULT_FLAG_WRITE 1u
#define FAULT_FLAG_INSTRUCTION 0x100u
#define VM_FAULT_MAJOR 4
#define VM_SHARED 8u
#define SB_NOUSER (1u << 31)

#define PAGE_SHIFT 12
#define PAGE_BYTES (1u << PAGE_SHIFT)

#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFBLK 0060000

#define NAME_BYTES 256
#define DEPTH 48

struct file_key {
	__u64 inode;
	__u32 device;
	__u32 generation;
};

/* The numbers of mapped files whose path was reported. */
struct {
	int (*type)[BPF_MAP_TYPE_LRU_HASH];
	int (*max_entries)[1 << 14];
	struct file_key *key;
	__u64 *value;
} files SEC(".maps");

/* What is mapped at an address. */
struct mapping {
	struct file *file;
	unsigned long start;
	unsigned long flags;
	unsigned long page;
};

static long note_mapping(struct task_struct *task, struct vm_area_struct *area, struct mapping *mapping)
{
	(void)task;
	READ(mapping->start, area, vm_area_struct, vm_start);
	READ(mapping->flags, area, vm_area_struct, vm_flags);
	READ(mapping->page, area, vm_area_struct, vm_pgoff);
	READ(mapping->file, area, vm_area_struct, vm_file);
	return 0;
}

/* Where the walk from a file to the root is. */
struct walk {
	struct dentry *dentry;
	struct dentry *root; /* of the mount */
	struct mount *mount;
	__u32 length; /* of the names so far */
	__u32 has_failed;
};

/* Takes one name, or goes from the root of a mount to where it is mounted. */
static long take_name(__u32 index, struct walk *walk)
{
	__u32 slot = 2, at = walk->length;
	struct path *p = bpf_map_lookup_elem(&scratch, &slot);
	struct dentry *dentry = walk->dentry, *parent = 0;
	struct mount *above = 0;
	const unsigned char *name = 0;
	long bytes;

	(void)index;
	READ(parent, dentry, dentry, d_parent);
	if (dentry == walk->root || dentry == parent) {
		READ(above, walk->mount, mount, mnt_parent);
		if (!above || above == walk->mount)
			return 1;
		READ(walk->dentry, walk->mount, mount, mnt_mountpoint);
		READ(walk->root, above, mount, mnt.mnt_root);
		walk->mount = above;
		return 0;
	}
	walk->has_failed = 1;
	READ(name, dentry, dentry, d_name.name);
	/* The verifier knows no limit of what is in memory, and the compiler must not either. */
	asm volatile("" : "+r"(at));
	at &= PATH_BYTES - 1;
	if (!p || at > PATH_BYTES - NAME_BYTES)
		return 1;
	bytes = bpf_probe_read_kernel_str(p->text + at, NAME_BYTES, name);
	if (bytes <= 0)
		return 1;
	walk->length = at + bytes;
	walk->dentry = parent;
	walk->has_failed = 0;
	return 0;
}

/* Reports the path of a file: its names from the last to the first, each with a zero at its end. Returns whether it could. */
static inline int report_file(struct file *file, __u32 thread, __u64 number)
{
	__u32 slot = 2, length;
	struct path *p = bpf_map_lookup_elem(&scratch, &slot);
	struct vfsmount *mounted = 0;
	struct walk walk = {};

	if (!p)
		return 0;
	READ(mounted, file, file, f_path.mnt);
	READ(walk.dentry, file, file, f_path.dentry);
	READ(walk.root, mounted, vfsmount, mnt_root);
	walk.mount = (void *)mounted - __builtin_preserve_field_info(((struct mount *)0)->mnt, 0);
	bpf_loop(DEPTH, take_name, &walk, 0);
	length = walk.length;
	if (walk.has_failed || !length || length >= PATH_BYTES)
		return 0;
	p->kind = FILE;
	p->which = 1;
	p->length = length;
	p->thread = thread;
	p->begin_ns = number;
	asm volatile("" : "+r"(length));
	length &= PATH_BYTES - 1;
	if (!bpf_ringbuf_output(&events, p, PATH_HEADER + length, wakeup()))
		return 1;
	count(LOST_EVENTS);
	return 0;
}

/* The number of the file, after its path; 0 if it is none that storage holds, or if its path is unknown. */
static inline __u64 number_of(struct file *file, __u32 thread)
{
	struct inode *inode = 0;
	struct super_block *super = 0;
	struct file_key key = {};
	unsigned long inode_number = 0, super_flags = 0;
	__u64 *known, number;
	__u16 mode = 0;

	READ(inode, file, file, f_inode);
	READ(mode, inode, inode, i_mode);
	READ(super, inode, inode, i_sb);
	READ(super_flags, super, super_block, s_flags);
	/* Shared memory is in a file system without a mount. */
	if (((mode & S_IFMT) != S_IFREG && (mode & S_IFMT) != S_IFBLK) || super_flags & SB_NOUSER)
		return 0;
	READ(inode_number, inode, inode, i_ino);
	key.inode = inode_number;
	READ(key.generation, inode, inode, i_generation);
	READ(key.device, super, super_block, s_dev);
	known = bpf_map_lookup_elem(&files, &key);
	if (known)
		return *known;
	number = __sync_fetch_and_add(&counters[FILES], 1) + 1;
	if (!report_file(file, thread, number)) {
		count(UNKNOWN_PATHS);
		return 0;
	}
	bpf_map_update_elem(&files, &key, &number, 0);
	return number;
}

static ALWAYS_INLINE int fault_begins(__u64 address, __u64 error_code)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 id = (__u32)ids, process = ids >> 32;
	struct thread *t = bpf_map_lookup_elem(&threads, &id);

	if (!t) {
		if (!records_all || process == counters[RECORDER])
			return 0;
		t = found_thread(id, process);
	}
	/* With page faults disabled, the kernel only probes memory. */
	if (!t || t->state & AWAITS_EXEC || bpf_get_current_task_btf()->pagefault_disabled)
		return 0;
	t->fault_at = (address & ~(__u64)(PAGE_BYTES - 1)) | (error_code & (PAGE_BYTES - 1));
	*(volatile __u64 *)&t->fault_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/page_fault_user")
int user_fault_begins(__u64 *ctx)
{
	return fault_begins(ctx[0], ctx[2]);
}

/* The kernel reads or writes the memory of the process. */
SEC("tp_btf/page_fault_kernel")
int kernel_fault_begins(__u64 *ctx)
{
	return fault_begins(ctx[0], ctx[2]);
}

static ALWAYS_INLINE void report_fault(struct thread *t, __u32 id, struct mapping *mapping, int is_major, __u64 now)
{
	__u64 at = t->fault_at, file;
	int is_shared = (mapping->flags & VM_SHARED) != 0;
	struct call *c;

	/* The first write to a page of a private mapping copies it: the file is not involved. */
	if (!is_shared && at & PF_PROT)
		return;
	file = number_of(mapping->file, id);
	if (!file)
		return;
	c = reserve();
	if (!c)
		return;
	__builtin_memset(c, 0, sizeof(*c));
	c->kind = CALL;
	c->number = FAULT;
	c->thread = id;
	c->process = t->process;
	c->begin_ns = t->fault_ns;
	c->end_ns = now;
	c->arguments[0] = (((at - mapping->start) >> PAGE_SHIFT) + mapping->page) << PAGE_SHIFT;
	c->arguments[1] = PAGE_BYTES;
	c->arguments[2] = (is_shared && at & PF_WRITE ? FAULT_FLAG_WRITE : 0) | (at & PF_INSTR ? FAULT_FLAG_INSTRUCTION : 0);
	c->arguments[3] = file;
	c->result = is_major ? VM_FAULT_MAJOR : 0;
	c->cgroup = bpf_get_current_cgroup_id();
	if (!(t->state & IS_CALLING)) {
		c->waited_ns = t->waited_ns;
		t->waited_ns = 0;
	}
	bpf_ringbuf_submit(c, wakeup());
}

static inline int fault_ends(int is_major)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 id = (__u32)bpf_get_current_pid_tgid();
	struct thread *t = bpf_map_lookup_elem(&threads, &id);
	struct mapping mapping = {};

	if (!t || !t->fault_ns)
		return 0;
	if (bpf_find_vma(bpf_get_current_task_btf(), t->fault_at, note_mapping, &mapping, 0))
		count(LOST_FAULTS);
	else if (mapping.file)
		report_fault(t, id, &mapping, is_major, now);
	/* After the event, so that a fault is in the ring or in flight at any time. */
	*(volatile __u64 *)&t->fault_ns = 0;
	return 0;
}

SEC("perf_event")
int minor_fault_ends(void *ctx)
{
	(void)ctx;
	return fault_ends(0);
}

SEC("perf_event")
int major_fault_ends(void *ctx)
{
	(void)ctx;
	return fault_ends(1);
}

#endif
