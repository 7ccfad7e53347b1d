/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The fields of kernel structures that the recorder of calls reads, by name only: the loader finds their offsets in the BTF
 * of the running kernel (CO-RE). Every name must be spelled as in the kernel.
 */
#ifndef IOSONAR_FILES_KERNEL_H
#define IOSONAR_FILES_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_x86_64)
struct pt_regs {
	unsigned long di, si, dx, r10, r8, r9;
};
#elif defined(__TARGET_ARCH_aarch64)
struct pt_regs {
	__u64 regs[31];
};
#endif

struct thread_info {
	unsigned long flags;
	__u32 status;
};

struct task_struct {
	struct thread_info thread_info;
	__s32 pid;
	__s32 tgid;
	__s32 pagefault_disabled;
};

struct linux_binprm {
	const char *filename;
};

struct io_cqe {
	__u64 user_data;
	__s32 res;
	__s32 fd;
};

struct io_uring_cqe {
	__u64 user_data;
	__s32 res;
};

struct io_kiocb {
	__u8 opcode;
	__u64 flags;
	struct io_cqe cqe;
};

struct filename {
	const char *name;
};

struct qstr {
	const unsigned char *name;
};

struct super_block {
	__u32 s_dev;
	unsigned long s_flags;
};

struct inode {
	__u16 i_mode;
	unsigned long i_ino;
	__u32 i_generation;
	struct super_block *i_sb;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

/* `struct path`: the loader leaves out what follows three underscores. */
struct path___kernel {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct path___kernel f_path;
	struct inode *f_inode;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct kiocb {
	__s64 ki_pos;
};

struct io_rw {
	struct kiocb kiocb;
	__u64 addr;
	__u32 len;
	__s32 flags;
};

struct io_splice {
	__s64 off_out;
	__s64 off_in;
	__u64 len;
	__s32 splice_fd_in;
	__u32 flags;
};

struct open_how {
	__u64 flags;
	__u64 mode;
};

struct io_open {
	__s32 dfd;
	struct filename *filename;
	struct open_how how;
};

struct io_close {
	__s32 fd;
};

struct io_sync {
	__s64 len;
	__s64 off;
	__s32 flags;
	__s32 mode;
};

struct io_rename {
	__s32 old_dfd;
	__s32 new_dfd;
	struct filename *oldpath;
	struct filename *newpath;
	__s32 flags;
};

struct io_unlink {
	__s32 dfd;
	__s32 flags;
	struct filename *filename;
};

struct io_mkdir {
	__s32 dfd;
	__u16 mode;
	struct filename *filename;
};

struct io_link {
	__s32 old_dfd;
	__s32 new_dfd;
	struct filename *oldpath;
	struct filename *newpath;
	__s32 flags;
};

struct io_statx {
	__s32 dfd;
	__u32 flags;
	struct filename *filename;
};

struct io_fadvise {
	__u64 offset;
	__u64 len;
	__u32 advice;
};

struct io_ftrunc {
	__s64 len;
};

#pragma clang attribute pop

/* Bits of task_struct.thread_info that mark a 32-bit call. */
#define TS_COMPAT 2u
#define ARM64_TIF_32BIT 22

/* The BPF helpers used here, by their numbers in the stable ABI (enum bpf_func_id). */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, __u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static __u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static __u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static __u64 (*const bpf_get_current_cgroup_id)(void) = (void *)80;
static long (*const bpf_probe_read_user)(void *to, __u32 size, const void *from) = (void *)112;
static long (*const bpf_probe_read_kernel)(void *to, __u32 size, const void *from) = (void *)113;
static long (*const bpf_probe_read_user_str)(void *to, __u32 size, const void *from) = (void *)114;
static long (*const bpf_probe_read_kernel_str)(void *to, __u32 size, const void *from) = (void *)115;
static long (*const bpf_ringbuf_output)(void *ring, void *data, __u64 size, __u64 flags) = (void *)130;
static void *(*const bpf_ringbuf_reserve)(void *ring, __u64 size, __u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, __u64 flags) = (void *)132;
static __u64 (*const bpf_ringbuf_query)(void *ring, __u64 what) = (void *)134;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
static long (*const bpf_find_vma)(struct task_struct *task, __u64 address, void *callback, void *context,
				  __u64 flags) = (void *)180;
static long (*const bpf_loop)(__u32 times, void *callback, void *context, __u64 flags) = (void *)181;

#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LRU_HASH 9
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_NOEXIST 1
#define BPF_RB_NO_WAKEUP 1
#define BPF_RB_FORCE_WAKEUP 2
#define BPF_RB_AVAIL_DATA 0

#define SEC(name) __attribute__((section(name), used))

#endif
