/* The machine's own start skew: processes that only sleep until the same time of CLOCK_MONOTONIC, and read it. It prints how
   far the first is from the last, in µs, for each round.
   cc -O2 -o wake wake.c
   wake PROCESSES ROUNDS */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ll + t.tv_nsec; }

int main(int words, char **word) {
  if (words != 3) { fprintf(stderr, "wake PROCESSES ROUNDS\n"); return 2; }
  int processes = atoi(word[1]);
  long long *woke = mmap(0, processes * sizeof *woke, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (woke == MAP_FAILED) { perror("mmap"); return 1; }
  for (int round = atoi(word[2]); round > 0; round--) {
    long long due = now_ns() + 300000000ll, first, last;
    struct timespec at = { due / 1000000000ll, due % 1000000000ll };
    for (int i = 0; i < processes; i++)
      if (!fork()) {
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0)) ;
        woke[i] = now_ns();
        _exit(0);
      }
    while (wait(0) > 0) ;
    first = last = woke[0];
    for (int i = 1; i < processes; i++) {
      if (woke[i] < first) first = woke[i];
      if (woke[i] > last) last = woke[i];
    }
    printf("%.1f\n", (last - first) / 1e3);
  }
}
