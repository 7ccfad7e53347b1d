/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Tells user space what happens to the requests of a few devices, event by event. All thinking (which end belongs to
 * which beginning, which row comes first) is done there, in pairing.rs and order.rs: here is only what must be.
 *
 *   bio ──QUEUED──┬──────────────(devices without requests)────────────▶ DONE(bio)
 *                 └─▶ request ──ISSUED(request, first bio)──▶ DONE(request)       as the device sees it
 *                          each bio ──BIO_ISSUED(bio)──▶ DONE(bio)                as it was asked for
 */
#include "kernel.h"

/* As in event.rs: a change there is a change here. */
enum kind {
	QUEUED = 1,	/* a bio was asked for: id is the bio */
	ISSUED = 2,	/* a request goes to the driver: id is the request, link its first bio */
	BIO_ISSUED = 3, /* a bio's request goes to the driver: id is the bio */
	DONE = 4,	/* id is what was completed */
	SPLIT = 5,	/* id is a bio made for the first part of the bio `link` */
	REQUEUED = 6,	/* the driver gave the request id back */
};

struct event {
	__u64 time_ns;	/* CLOCK_MONOTONIC */
	__u64 id;
	__u64 link;
	__u64 sector;	/* of the whole disk */
	__u32 bytes;
	__u32 pid;	/* the process, not the thread */
	__u8 kind;
	__u8 device;	/* which of the devices asked for */
	__u8 op;	/* REQ_OP_*, with an empty write that flushes made REQ_OP_FLUSH */
	__u8 flags;	/* as in the load's table */
	__s16 error;	/* of DONE: what the driver said, 0 for success */
	__u16 losses;	/* the low bits of LOST_EVENTS by then: a beginning and an end with different ones do not match */
	char comm[16];
};

#define FLAG_FUA 1
#define FLAG_SYNC 2
#define FLAG_META 4
#define FLAG_READAHEAD 8
#define FLAG_PREFLUSH 16

#define DEVICES 16
#define NONE 0xffffffffu

/* What to record; written before the program is loaded. An element of `part` is 0 where the whole disk is meant. */
const volatile __u32 device_count = 0;
const volatile __u32 disk[DEVICES] = {};
const volatile __u32 part[DEVICES] = {};
const volatile __u64 first_sector[DEVICES] = {};
const volatile __u64 end_sector[DEVICES] = {};
const volatile __u32 each_bio = 0;
const volatile __u64 wake_bytes = 0;

/* What could not be told: as in kernel.rs. */
enum counter {
	LOST_EVENTS = 0,    /* the ring had no room */
	OTHER_COMMANDS = 1, /* neither of what a load can hold: zones, the drive's own commands */
	COUNTERS = 2,
};
__u64 counters[COUNTERS] = {};

struct {
	int (*type)[BPF_MAP_TYPE_RINGBUF];
	int (*max_entries)[1 << 24];
} events SEC(".maps");

/* Requests seldom hold more bios than this; what lies beyond counts as lost. */
#define BIOS_PER_REQUEST 1024

static inline void count(enum counter counter)
{
	__sync_fetch_and_add(&counters[counter], 1);
}

static inline __u32 disk_number(struct gendisk *d)
{
	return (__u32)d->major << 20 | (__u32)d->first_minor;
}

static inline int is_recorded(__u32 number)
{
	for (__u32 i = 0; i < DEVICES && i < device_count; i++)
		if (disk[i] == number)
			return 1;
	return 0;
}

/* The device on that disk that the request belongs to. One without data belongs to whole disks, and to a partition
 * if it is addressed to it, or to no one in particular (`addressed` 0: a request that the block layer made itself). */
static inline __u32 find_device(__u32 number, __u64 sector, __u32 bytes, __u32 addressed)
{
	for (__u32 i = 0; i < DEVICES && i < device_count; i++) {
		if (disk[i] != number)
			continue;
		if (bytes ? sector >= first_sector[i] && sector < end_sector[i]
			  : !part[i] || !addressed || addressed == part[i])
			return i;
	}
	return NONE;
}

/* Whether a bio may concern a recorded device. What is left of one by now lies where all of it lay. */
static inline int is_recorded_bio(struct bio *bio)
{
	return find_device(disk_number(bio->bi_bdev->bd_disk), bio->bi_iter.bi_sector, bio->bi_iter.bi_size, 0) != NONE;
}

/* Whether a request may: it may hold bios of several partitions, and a discard may hold some from anywhere. */
static inline int is_recorded_request(struct request *rq)
{
	__u32 number = disk_number(rq->q->disk), sectors = rq->__data_len >> 9;
	__u64 sector = rq->__sector;
	int is_somewhere = sectors && (rq->cmd_flags & REQ_OP_MASK) != REQ_OP_DISCARD;

	for (__u32 i = 0; i < DEVICES && i < device_count; i++)
		if (disk[i] == number &&
		    (!is_somewhere || (sector < end_sector[i] && sector + sectors > first_sector[i])))
			return 1;
	return 0;
}

static inline __u8 table_flags(__u32 opf)
{
	return (opf & kernel_bit(__REQ_FUA) ? FLAG_FUA : 0) | (opf & kernel_bit(__REQ_SYNC) ? FLAG_SYNC : 0) |
	       (opf & kernel_bit(__REQ_META) ? FLAG_META : 0) | (opf & kernel_bit(__REQ_RAHEAD) ? FLAG_READAHEAD : 0) |
	       (opf & kernel_bit(__REQ_PREFLUSH) ? FLAG_PREFLUSH : 0);
}

static inline int has_a_row(__u32 op)
{
	return op <= REQ_OP_DISCARD || op == REQ_OP_SECURE_ERASE || op == REQ_OP_WRITE_ZEROES;
}

/* The time is taken before the room is: an event that waits for room is not younger for it. */
static inline struct event *begin(__u8 kind, const void *id)
{
	__u64 now = bpf_ktime_get_ns();
	struct event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		count(LOST_EVENTS);
		return 0;
	}
	*e = (struct event){ .time_ns = now, .kind = kind, .id = (__u64)id, .losses = counters[LOST_EVENTS] };
	return e;
}

/* The reader looks by itself many times a second; it is only woken when it must hurry, for waking it costs the
 * recorded process time. */
static inline void end(struct event *e)
{
	bpf_ringbuf_submit(e, bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) >= wake_bytes ? BPF_RB_FORCE_WAKEUP :
											    BPF_RB_NO_WAKEUP);
}

static inline void tell(__u8 kind, const void *id, __u64 link, __s32 error)
{
	struct event *e = begin(kind, id);

	if (!e)
		return;
	e->link = link;
	e->error = error;
	end(e);
}

static inline void describe(struct event *e, __u32 device, __u32 opf, __u64 sector, __u32 bytes)
{
	__u32 op = opf & REQ_OP_MASK;

	e->device = device;
	e->op = op == REQ_OP_WRITE && !bytes ? REQ_OP_FLUSH : op;
	e->flags = table_flags(opf);
	e->sector = sector;
	e->bytes = bytes;
}

SEC("tp_btf/block_bio_queue")
int bio_queue(__u64 *ctx)
{
	struct bio *bio = (void *)ctx[0];
	struct block_device *bdev = bio->bi_bdev;
	__u32 opf = bio->bi_opf, bytes = bio->bi_iter.bi_size;
	__u64 sector = bio->bi_iter.bi_sector;
	__u32 device = find_device(disk_number(bdev->bd_disk), sector, bytes, bdev->bd_dev);
	struct event *e;

	if (device == NONE)
		return 0;
	if (!has_a_row(opf & REQ_OP_MASK)) {
		count(OTHER_COMMANDS);
		return 0;
	}
	e = begin(QUEUED, bio);
	if (!e)
		return 0;
	describe(e, device, opf, sector, bytes);
	e->pid = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm(e->comm, sizeof(e->comm));
	end(e);
	return 0;
}

SEC("tp_btf/block_split")
int split(__u64 *ctx)
{
	struct bio *bio = (void *)ctx[0];

	if (is_recorded_bio(bio))
		tell(SPLIT, bio, (__u64)bio->bi_private, 0);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int rq_issue(__u64 *ctx)
{
	struct request *rq = (void *)ctx[0];
	__u32 number = disk_number(rq->q->disk), opf = rq->cmd_flags, bytes = rq->__data_len;
	__u64 sector = rq->__sector;
	struct bio *bio = rq->bio;
	__u32 device;
	struct event *e;

	if (!is_recorded(number))
		return 0;
	if ((opf & REQ_OP_MASK) >= REQ_OP_DRV_IN)
		/* It lies nowhere. (Operations on zones were counted as bios.) */
		count(OTHER_COMMANDS);
	if (!has_a_row(opf & REQ_OP_MASK) || !is_recorded_request(rq))
		return 0;
	if (each_bio) {
		for (int i = 0; bio; i++, bio = bio->bi_next) {
			if (i == BIOS_PER_REQUEST) {
				count(LOST_EVENTS);
				break;
			}
			tell(BIO_ISSUED, bio, 0, 0);
		}
		return 0;
	}
	device = find_device(number, sector, bytes, 0);
	if (device == NONE)
		return 0;
	e = begin(ISSUED, rq);
	if (!e)
		return 0;
	e->link = (__u64)bio;
	describe(e, device, opf, sector, bytes);
	end(e);
	return 0;
}

SEC("tp_btf/block_rq_requeue")
int rq_requeue(__u64 *ctx)
{
	struct request *rq = (void *)ctx[0];

	if (is_recorded_request(rq))
		tell(REQUEUED, rq, 0, 0);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int rq_complete(__u64 *ctx)
{
	struct request *rq = (void *)ctx[0];
	__s32 error = ctx[1];
	__u32 bytes = ctx[2];
	struct bio *bio = rq->bio;

	if (!is_recorded_request(rq))
		return 0;
	if (!each_bio) {
		/* A request may be completed in parts; the last one counts. */
		if (bytes >= rq->__data_len)
			tell(DONE, rq, 0, error);
		return 0;
	}
	for (int i = 0; bio && bio->bi_iter.bi_size <= bytes; i++, bio = bio->bi_next) {
		if (i == BIOS_PER_REQUEST) {
			count(LOST_EVENTS);
			break;
		}
		bytes -= bio->bi_iter.bi_size;
		tell(DONE, bio, 0, error);
	}
	return 0;
}

/* Comes only for bios that never were part of a request: see BIO_TRACE_COMPLETION in the kernel. */
SEC("tp_btf/block_bio_complete")
int bio_complete(__u64 *ctx)
{
	struct bio *bio = (void *)ctx[1];

	if (is_recorded_bio(bio))
		tell(DONE, bio, 0, bio->bi_status);
	return 0;
}

/* Some of the helpers are for programs under the GPL only; the kernel takes this as one. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
