/* The least a replayer can be: one thread, one io_uring, one buffer; it spins until a request is due and submits it. It writes
   no result, looks for no conflicts and checks nothing but errors: a limit to measure against, not a tool.
   cc -O2 -o bare_loop bare_loop.c -luring
   bare_loop LOAD DEVICE [DEPTH [SPEEDUP [START END]]]
   LOAD is blkreplay's text, plain; START and END are seconds of the load. Prints requests, errors and
   requests per second. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SECTOR = 512, LEAD_NS = 100000000 };
typedef struct { long at, offset; unsigned bytes; int writes; } request;

static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }

static void fail(const char *what) { perror(what); exit(1); }

static struct io_uring ring;
static long in_flight, errors;

/* Takes all completions that are there; with `wait`, at least one. */
static void reap(int wait) {
  struct io_uring_cqe *cqe;
  if (wait && io_uring_wait_cqe(&ring, &cqe)) fail("io_uring_wait_cqe");
  unsigned head, count = 0;
  io_uring_for_each_cqe(&ring, head, cqe) { errors += cqe->res < 0; count++; }
  io_uring_cq_advance(&ring, count);
  in_flight -= count;
}

int main(int words, char **word) {
  if (words < 3) { fprintf(stderr, "bare_loop LOAD DEVICE [DEPTH [SPEEDUP [START END]]]\n"); return 2; }
  long depth = words > 3 ? atol(word[3]) : 512, count = 0, room = 0;
  double speedup = words > 4 ? atof(word[4]) : 1, start = words > 5 ? atof(word[5]) : 0, end = words > 6 ? atof(word[6]) : 1e18;
  FILE *load = fopen(word[1], "r");
  if (!load) fail(word[1]);
  request *all = NULL;
  size_t largest = 4096, length = 0;
  char *line = NULL;
  while (getline(&line, &length, load) > 0) {
    double at;
    long sector, sectors;
    char op;
    if (sscanf(line, " %lf ; %ld ; %ld ; %c", &at, &sector, &sectors, &op) != 4 || at < start || at >= end) continue;
    if (count == room && !(all = realloc(all, (room = room ? 2 * room : 4096) * sizeof *all))) fail("memory");
    all[count++] = (request){(at - start) * 1e9 / speedup, sector * SECTOR, sectors * SECTOR, op == 'W' || op == 'w'};
    if (all[count - 1].bytes > largest) largest = all[count - 1].bytes;
  }
  int device = open(word[2], O_RDWR | O_DIRECT);
  if (device < 0) fail(word[2]);
  void *buffer;
  if (posix_memalign(&buffer, 4096, largest)) fail("memory");
  for (size_t i = 0; i < largest; i++) ((unsigned char *)buffer)[i] = rand();
  if (io_uring_queue_init(depth, &ring, IORING_SETUP_COOP_TASKRUN)) fail("io_uring_queue_init");
  long zero = now() + LEAD_NS;
  for (long n = 0; n < count; n++) {
    request *r = &all[n];
    do reap(in_flight >= depth);
    while (now() < zero + r->at || in_flight >= depth);
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    if (!sqe) fail("io_uring_get_sqe");
    if (r->writes) io_uring_prep_write(sqe, device, buffer, r->bytes, r->offset);
    else io_uring_prep_read(sqe, device, buffer, r->bytes, r->offset);
    if (io_uring_submit(&ring) != 1) fail("io_uring_submit");
    in_flight++;
  }
  while (in_flight) reap(1);
  printf("%ld requests, %ld errors, iops %.0f\n", count, errors, count / ((now() - zero) / 1e9));
  return errors != 0;
}
