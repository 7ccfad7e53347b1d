/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Reports what happens to the requests of a few devices, event by event. Matching completions and sorting are left to
 * user space (pairing.rs, reorder.rs), to keep the cost in the kernel small.
 *
 *   bio ──QUEUED──┬──────────────(bio-based devices)─────────────────▶ COMPLETED(bio)
 *                 └─▶ request ──ISSUED(request, first bio)──▶ COMPLETED(request)  level D
 *                          each bio ──BIO_ISSUED(bio)──▶ COMPLETED(bio)           level Q
 */
#include "kernel.h"

/* `struct event` is decoded in event.rs: change both together. */
enum kind {
	QUEUED = 1,	/* a bio was queued: id is the bio */
	ISSUED = 2,	/* a request was issued to the driver: id is the request, link its first bio */
	BIO_ISSUED = 3, /* the request of a bio was issued to the driver: id is the bio */
	COMPLETED = 4,	/* id is the bio or request that completed */
	SPLIT = 5,	/* id is a new bio, split off the front of the bio `link` */
	REQUEUED = 6,	/* the driver requeued the request id */
};

struct event {
	__u64 time_ns;	/* CLOCK_MONOTONIC */
	__u64 id;
	__u64 link;
	__u64 sector;	/* from the start of the disk */
	__u32 bytes;
	__u32 pid;	/* the process, not the thread */
	__u8 kind;
	__u8 device;	/* index of the recorded device */
	__u8 op;	/* REQ_OP_*; an empty write, which is a flush, is reported as REQ_OP_FLUSH */
	__u8 flags;	/* as in the load's table */
	__s16 error;	/* of COMPLETED: the driver's error, 0 for success */
	__u16 losses;	/* low bits of LOST_EVENTS so far: events with different values cannot be paired */
	char comm[16];
};

#define FLAG_FUA 1
#define FLAG_SYNC 2
#define FLAG_META 4
#define FLAG_READAHEAD 8
#define FLAG_PREFLUSH 16

#define DEVICES 16
#define NONE 0xffffffffu

/* What to record; the loader fills it in. An element of `partition` is 0 for a whole disk. */
const volatile __u32 device_count = 0;
const volatile __u32 disk[DEVICES] = {};
const volatile __u32 partition[DEVICES] = {};
const volatile __u64 first_sector[DEVICES] = {};
const volatile __u64 end_sector[DEVICES] = {};
const volatile __u32 per_bio = 0;
const volatile __u64 wake_bytes = 0;

/* Events that could not be reported; kernel.rs has the same indices. */
enum counter {
	LOST_EVENTS = 0,    /* the ring had no room */
	OTHER_COMMANDS = 1, /* not representable in a load: zone management, passthrough */
	COUNTERS = 2,
};
__u64 counters[COUNTERS] = {};

struct {
	int (*type)[BPF_MAP_TYPE_RINGBUF];
	int (*max_entries)[1 << 24];
} events SEC(".maps");

/* Requests seldom have more bios than this; further bios count as lost. */
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

/* The recorded device on that disk that a request belongs to. A request without data belongs to the whole disk. It
 * belongs to a partition if it was submitted to that, or if the block layer made it (`addressed` is 0). */
static inline __u32 find_device(__u32 number, __u64 sector, __u32 bytes, __u32 addressed)
{
	for (__u32 i = 0; i < DEVICES && i < device_count; i++) {
		if (disk[i] != number)
			continue;
		if (bytes ? sector >= first_sector[i] && sector < end_sector[i]
			  : !partition[i] || !addressed || addressed == partition[i])
			return i;
	}
	return NONE;
}

/* Whether a bio may be of a recorded device. The rest of a bio after a split is on the same device as all of it. */
static inline int is_recorded_bio(struct bio *bio)
{
	return find_device(disk_number(bio->bi_bdev->bd_disk), bio->bi_iter.bi_sector, bio->bi_iter.bi_size, 0) != NONE;
}

/* The same for a request. It may contain bios of several partitions; the bios of a discard need not be adjacent. */
static inline int is_recorded_request(struct request *rq)
{
	__u32 number = disk_number(rq->q->disk), sectors = rq->__data_len >> 9;
	__u64 sector = rq->__sector;
	int has_extent = sectors && (rq->cmd_flags & REQ_OP_MASK) != REQ_OP_DISCARD;

	for (__u32 i = 0; i < DEVICES && i < device_count; i++)
		if (disk[i] == number &&
		    (!has_extent || (sector < end_sector[i] && sector + sectors > first_sector[i])))
			return 1;
	return 0;
}

static inline __u8 table_flags(__u32 opf)
{
	return (opf & kernel_bit(__REQ_FUA) ? FLAG_FUA : 0) | (opf & kernel_bit(__REQ_SYNC) ? FLAG_SYNC : 0) |
	       (opf & kernel_bit(__REQ_META) ? FLAG_META : 0) | (opf & kernel_bit(__REQ_RAHEAD) ? FLAG_READAHEAD : 0) |
	       (opf & kernel_bit(__REQ_PREFLUSH) ? FLAG_PREFLUSH : 0);
}

static inline int is_recordable(__u32 op)
{
	return op <= REQ_OP_DISCARD || op == REQ_OP_SECURE_ERASE || op == REQ_OP_WRITE_ZEROES;
}

/* Reads the clock before it reserves room in the ring: the time of an event excludes the wait for room. */
static inline struct event *reserve(__u8 kind, const void *id)
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

/* The reader polls many times a second. It is woken only if the ring is filling up, as a wake-up costs the recorded
 * process time. */
static inline void submit(struct event *e)
{
	bpf_ringbuf_submit(e, bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) >= wake_bytes ? BPF_RB_FORCE_WAKEUP :
											    BPF_RB_NO_WAKEUP);
}

static inline void report(__u8 kind, const void *id, __u64 link, __s32 error)
{
	struct event *e = reserve(kind, id);

	if (!e)
		return;
	e->link = link;
	e->error = error;
	submit(e);
}

static inline void fill(struct event *e, __u32 device, __u32 opf, __u64 sector, __u32 bytes)
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
	if (!is_recordable(opf & REQ_OP_MASK)) {
		count(OTHER_COMMANDS);
		return 0;
	}
	e = reserve(QUEUED, bio);
	if (!e)
		return 0;
	fill(e, device, opf, sector, bytes);
	e->pid = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm(e->comm, sizeof(e->comm));
	submit(e);
	return 0;
}

SEC("tp_btf/block_split")
int split(__u64 *ctx)
{
	struct bio *bio = (void *)ctx[0];

	if (is_recorded_bio(bio))
		report(SPLIT, bio, (__u64)bio->bi_private, 0);
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
		/* Such a request has no position: count it if its disk is recorded. (Zone operations were counted as bios.) */
		count(OTHER_COMMANDS);
	if (!is_recordable(opf & REQ_OP_MASK) || !is_recorded_request(rq))
		return 0;
	if (per_bio) {
		for (int i = 0; bio; i++, bio = bio->bi_next) {
			if (i == BIOS_PER_REQUEST) {
				count(LOST_EVENTS);
				break;
			}
			report(BIO_ISSUED, bio, 0, 0);
		}
		return 0;
	}
	device = find_device(number, sector, bytes, 0);
	if (device == NONE)
		return 0;
	e = reserve(ISSUED, rq);
	if (!e)
		return 0;
	e->link = (__u64)bio;
	fill(e, device, opf, sector, bytes);
	submit(e);
	return 0;
}

SEC("tp_btf/block_rq_requeue")
int rq_requeue(__u64 *ctx)
{
	struct request *rq = (void *)ctx[0];

	if (is_recorded_request(rq))
		report(REQUEUED, rq, 0, 0);
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
	if (!per_bio) {
		/* A request may complete in parts; the last one counts. */
		if (bytes >= rq->__data_len)
			report(COMPLETED, rq, 0, error);
		return 0;
	}
	for (int i = 0; bio && bio->bi_iter.bi_size <= bytes; i++, bio = bio->bi_next) {
		if (i == BIOS_PER_REQUEST) {
			count(LOST_EVENTS);
			break;
		}
		bytes -= bio->bi_iter.bi_size;
		report(COMPLETED, bio, 0, error);
	}
	return 0;
}

/* Fires only for bios that never were part of a request: see BIO_TRACE_COMPLETION in the kernel. */
SEC("tp_btf/block_bio_complete")
int bio_complete(__u64 *ctx)
{
	struct bio *bio = (void *)ctx[1];

	if (is_recorded_bio(bio))
		report(COMPLETED, bio, 0, bio->bi_status);
	return 0;
}

/* Some helpers require a GPL-compatible program; the kernel accepts this licence string as one. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
