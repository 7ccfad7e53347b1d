/* The least a closed program can be: random reads of 4 KiB, DEPTH in flight, by one thread with one io_uring and one shared
   buffer; the next read is issued when one has completed, or an exponentially distributed time later. No checks: a limit
   to measure against, not a tool. With `pread`, DEPTH threads with one read at a time instead.
   cc -O2 -pthread -o closed_loop closed_loop.c -luring -lm
   closed_loop spin|sleep|pread DEVICE DEPTH SECONDS [BATCH [THINK_US [ROWS|- [READS]]]]
   `spin` looks for completions all the time, `sleep` waits for one; at most BATCH completions are taken before what follows
   them is submitted. ROWS: a file of int64, for each read: cause (the read that it waited for, or -1), sector, and the times
   in ns from which it was ready (the cause seen as completed, and the think time), was issued, was seen as completed.
   READS: how many of 100 requests read; the others write the buffer. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SECTOR = 512, SIZE = 4096, NEAR_NS = 3000, MAX_DEPTH = 4096 };
typedef struct { long cause, sector, ready, issued, completed; } row;

static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }

static unsigned long next_random(unsigned long *state) {
  *state ^= *state << 13, *state ^= *state >> 7;
  return *state ^= *state << 17;
}

static double think_ns;
static unsigned long state = 88172645463325252;
static long places, end, reads = 100;
static int device;
static atomic_long done, errors;

/* Reads that wait for their time, the earliest first: a binary heap of (time, cause). */
static struct { long at, cause; } heap[MAX_DEPTH + 1];
static long heap_count;

static void push(long at, long cause) {
  long i = heap_count++;
  for (; i && heap[(i - 1) / 2].at > at; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
  heap[i].at = at, heap[i].cause = cause;
}

static void pop(void) {
  long at = heap[--heap_count].at, cause = heap[heap_count].cause, i = 0;
  for (long child; (child = 2 * i + 1) < heap_count; i = child) {
    if (child + 1 < heap_count && heap[child + 1].at < heap[child].at) child++;
    if (heap[child].at >= at) break;
    heap[i] = heap[child];
  }
  heap[i].at = at, heap[i].cause = cause;
}

static long think(void) { return think_ns ? -log((next_random(&state) >> 11) * 0x1p-53 + 0x1p-54) * think_ns : 0; }

static void *reader(void *number) {
  unsigned long mine = 88172645463325252 + 7919 * (long)number;
  void *buffer = aligned_alloc(4096, SIZE);
  for (; now() < end; done++)
    if (pread(device, buffer, SIZE, next_random(&mine) % places * SIZE) != SIZE) errors++;
  return free(buffer), NULL;
}

static void by_threads(long depth, double seconds) {
  pthread_t *all = malloc(depth * sizeof *all);
  end = now() + seconds * 1e9;
  for (long i = 0; i < depth; i++)
    if (pthread_create(&all[i], NULL, reader, (void *)i)) exit(2);
  for (long i = 0; i < depth; i++) pthread_join(all[i], NULL);
}

static row *by_ring(long depth, double seconds, long batch, int sleeps, long room) {
  struct io_uring ring;
  struct io_uring_params params = {.flags = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SINGLE_ISSUER};
  void *buffer = aligned_alloc(4096, SIZE);
  struct iovec whole = {buffer, SIZE};
  struct io_uring_cqe *cqe;
  row *rows = room ? malloc(room * sizeof *rows) : NULL;
  if (io_uring_queue_init_params(MAX_DEPTH, &ring, &params) || io_uring_register_buffers(&ring, &whole, 1) ||
      io_uring_register_files(&ring, &device, 1)) perror("set-up"), exit(2);
  if (rows) memset(rows, 0, room * sizeof *rows);
  mlockall(MCL_CURRENT);
  long flying = 0, issued = 0, submitted = 0, begin = now();
  end = begin + seconds * 1e9;
  for (long i = 0; i < depth; i++) push(begin + think(), -1);
  while (flying || heap_count) {
    long t = now();
    while (heap_count && heap[0].at <= t) {
      long place = next_random(&state) % places;
      struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
      if (reads == 100 || (long)(next_random(&state) % 100) < reads) io_uring_prep_read_fixed(sqe, 0, buffer, SIZE, place * SIZE, 0);
      else io_uring_prep_write_fixed(sqe, 0, buffer, SIZE, place * SIZE, 0);
      sqe->flags |= IOSQE_FIXED_FILE, sqe->user_data = issued;
      if (issued < room) rows[issued] = (row){heap[0].cause, place * (SIZE / SECTOR), heap[0].at, 0, 0};
      issued++, flying++;
      pop();
    }
    t = now();
    for (long i = submitted; i < issued && i < room; i++) rows[i].issued = t;
    /* With a think time, a read may become ready while others are in flight. */
    if (sleeps && !think_ns) io_uring_submit_and_wait(&ring, 1);
    else if (submitted < issued) io_uring_submit(&ring);
    submitted = issued;
    long taken = 0;
    while (taken < batch && (!think_ns || !heap_count || heap[0].at - now() > NEAR_NS) && io_uring_peek_cqe(&ring, &cqe) == 0) {
      t = now();
      if (cqe->res != SIZE) errors++;
      if ((long)cqe->user_data < room) rows[cqe->user_data].completed = t;
      long at = t + think();
      if (at < end) push(at, cqe->user_data);
      io_uring_cqe_seen(&ring, cqe);
      flying--;
      done++;
      taken++;
    }
  }
  return rows;
}

int main(int argc, char **argv) {
  if (argc < 5) return fprintf(stderr, "closed_loop spin|sleep|pread DEVICE DEPTH SECONDS [BATCH [THINK_US [ROWS|- [READS]]]]\n"), 2;
  long depth = atol(argv[3]), batch = argc > 5 ? atol(argv[5]) : 1, room = argc > 7 && strcmp(argv[7], "-") ? 4 << 20 : 0;
  double seconds = atof(argv[4]);
  think_ns = argc > 6 ? atof(argv[6]) * 1e3 : 0;
  reads = argc > 8 ? atol(argv[8]) : 100;
  device = open(argv[2], (reads < 100 ? O_RDWR : O_RDONLY) | O_DIRECT);
  if (device < 0) return perror(argv[2]), 2;
  if (depth < 1 || depth > MAX_DEPTH || batch < 1) return fprintf(stderr, "a depth of 1 to %d\n", MAX_DEPTH), 2;
  places = lseek(device, 0, SEEK_END) / SIZE;
  long begin = now();
  row *rows = NULL;
  if (!strcmp(argv[1], "pread")) by_threads(depth, seconds);
  else rows = by_ring(depth, seconds, batch, !strcmp(argv[1], "sleep"), room), begin = end - seconds * 1e9;
  printf("requests %ld errors %ld iops %.0f\n", done, errors, done / ((now() - begin) / 1e9));
  if (rows) {
    FILE *f = fopen(argv[7], "w");
    if (!f || fwrite(rows, sizeof *rows, done < room ? done : room, f) == 0 || fclose(f)) return perror(argv[7]), 2;
  }
  return errors != 0;
}
