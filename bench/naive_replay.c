/* Replays a load as simple programs do: threads issue one pread or pwrite at a time. With `select` and `sleep` each thread
   takes the next request and waits for its time by select() or usleep(); with `clock` a thread that reads the clock all the
   time wakes a waiting one. No record, no conflicts, no checks. DESTROYS DATA on DEVICE.
   cc -O2 -pthread -o naive_replay naive_replay.c ; naive_replay select|sleep|clock LOAD DEVICE [THREADS]
   (LOAD: plain classic text) */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

enum { SECTOR = 512, BUFFER = 4 << 20, MAX_THREADS = 4096 };
typedef struct { long at, sector; unsigned bytes; char op; } request;
typedef struct { sem_t wake; long request; } worker;

static request *load;
static long count, begin;
static int device, uses_select;
static atomic_long next, errors;
static worker workers[MAX_THREADS];
static int waiting[MAX_THREADS], waiting_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }

static void read_load(const char *path) {
  FILE *f = fopen(path, "r");
  if (!f) { perror(path); exit(2); }
  long room = 1 << 16;
  load = malloc(room * sizeof *load);
  char line[512], op;
  double at;
  long sector, sectors;
  while (fgets(line, sizeof line, f)) {
    if (sscanf(line, " %lf ; %ld ; %ld ; %c", &at, &sector, &sectors, &op) != 4 || !strchr("RrWw", op)) continue;
    if (count == room) load = realloc(load, (room *= 2) * sizeof *load);
    load[count++] = (request){at * 1e9, sector, sectors * SECTOR, op};
  }
}

static void issue(const request *r, char *buffer) {
  int reads = r->op == 'R' || r->op == 'r';
  ssize_t done = reads ? pread(device, buffer, r->bytes, r->sector * SECTOR) : pwrite(device, buffer, r->bytes, r->sector * SECTOR);
  if (done != (ssize_t)r->bytes) errors++;
}

static void *sleeping_worker(void *unused) {
  char *buffer = aligned_alloc(4096, BUFFER);
  memset(buffer, 1, BUFFER);
  for (long i; (i = next++) < count;) {
    long us = (begin + load[i].at - now()) / 1000;
    if (us > 0 && uses_select) {
      struct timeval t = {us / 1000000, us % 1000000};
      select(0, NULL, NULL, NULL, &t);
    } else if (us > 0) {
      usleep(us);
    }
    issue(&load[i], buffer);
  }
  return free(buffer), unused;
}

static void *woken_worker(void *number) {
  long me = (long)number;
  char *buffer = aligned_alloc(4096, BUFFER);
  memset(buffer, 1, BUFFER);
  for (;;) {
    pthread_mutex_lock(&lock);
    waiting[waiting_count++] = me;
    pthread_mutex_unlock(&lock);
    while (sem_wait(&workers[me].wake)) ;
    if (workers[me].request < 0) return free(buffer), NULL;
    issue(&load[workers[me].request], buffer);
  }
}

/* Gives a request, or -1 for the end, to a waiting thread. */
static void hand_out(long request) {
  for (int me = -1; me < 0;) {
    pthread_mutex_lock(&lock);
    if (waiting_count) me = waiting[--waiting_count];
    pthread_mutex_unlock(&lock);
    if (me >= 0) workers[me].request = request, sem_post(&workers[me].wake);
  }
}

int main(int argc, char **argv) {
  if (argc < 4) return fprintf(stderr, "naive_replay select|sleep|clock LOAD DEVICE [THREADS]\n"), 2;
  int watches_clock = !strcmp(argv[1], "clock");
  long threads = argc > 4 ? atol(argv[4]) : 64;
  uses_select = !strcmp(argv[1], "select");
  if (!watches_clock && !uses_select && strcmp(argv[1], "sleep")) return fprintf(stderr, "select, sleep or clock\n"), 2;
  if (threads < 1 || threads > MAX_THREADS) return fprintf(stderr, "1 to %d threads\n", MAX_THREADS), 2;
  read_load(argv[2]);
  device = open(argv[3], O_RDWR | O_DIRECT);
  if (device < 0) return perror(argv[3]), 2;
  pthread_t *all = malloc(threads * sizeof *all);
  begin = now() + 300000000;
  for (long i = 0; i < threads; i++) {
    sem_init(&workers[i].wake, 0, 0);
    if (pthread_create(&all[i], NULL, watches_clock ? woken_worker : sleeping_worker, (void *)i)) return perror("thread"), 2;
  }
  if (watches_clock) {
    for (long i = 0; i < count; i++) {
      while (now() < begin + load[i].at) ;
      hand_out(i);
    }
    for (long i = 0; i < threads; i++) hand_out(-1);
  }
  for (long i = 0; i < threads; i++) pthread_join(all[i], NULL);
  printf("requests %ld errors %ld\n", count, errors);
  return errors != 0;
}
