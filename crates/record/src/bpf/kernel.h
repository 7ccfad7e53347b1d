/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The fields of kernel structures that the recorder reads, by name only: the loader finds their offsets in the BTF of
 * the running kernel (CO-RE). Every name must be spelled as in the kernel.
 */
#ifndef IOSONAR_KERNEL_H
#define IOSONAR_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gendisk {
	int major;
	int first_minor;
};

struct block_device {
	struct gendisk *bd_disk;
	__u32 bd_dev;
};

struct bvec_iter {
	__u64 bi_sector;
	__u32 bi_size;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	__u32 bi_opf;
	__u8 bi_status;
	struct bvec_iter bi_iter;
	void *bi_private;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	__u32 cmd_flags;
	__u32 __data_len;
	__u64 __sector;
	struct bio *bio;
};

#pragma clang attribute pop

/* The loader puts in the kernel's values; those here only have to differ from each other. */
enum req_flag_bits {
	__REQ_SYNC = 11,
	__REQ_META = 12,
	__REQ_FUA = 17,
	__REQ_PREFLUSH = 18,
	__REQ_RAHEAD = 19,
};

/* The relocation `BPF_ENUMVAL_VALUE`: the loader puts in the enumerator's value. */
#define kernel_bit(name) (1u << __builtin_preserve_enum_value(*(enum req_flag_bits *)name, 1))

/* The operations of the block layer (enum req_op). Same numbers since 4.10; the type was renamed. */
#define REQ_OP_MASK 0xffu
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1
#define REQ_OP_FLUSH 2
#define REQ_OP_DISCARD 3
#define REQ_OP_SECURE_ERASE 5
#define REQ_OP_WRITE_ZEROES 9
#define REQ_OP_DRV_IN 34 /* from here on: driver-private and passthrough commands */

/* The BPF helpers used here, by their numbers in the stable ABI (enum bpf_func_id). */
static __u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static __u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*const bpf_get_current_comm)(void *buffer, __u32 size) = (void *)16;
static void *(*const bpf_ringbuf_reserve)(void *ring, __u64 size, __u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, __u64 flags) = (void *)132;
static __u64 (*const bpf_ringbuf_query)(void *ring, __u64 what) = (void *)134;

#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_RB_NO_WAKEUP 1
#define BPF_RB_FORCE_WAKEUP 2
#define BPF_RB_AVAIL_DATA 0

#define SEC(name) __attribute__((section(name), used))

#endif
