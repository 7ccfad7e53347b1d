/* The machine's own noise, below which no replayer can be: a thread that only watches the clock. It prints the percentage of
   the times of a Poisson process that it saw within 10, 25 and 50 µs.
   cc -O2 -o floor floor.c -lm
   floor RATE SECONDS */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_us(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e6 + t.tv_nsec / 1e3; }

int main(int words, char **word) {
  if (words != 3) { fprintf(stderr, "floor RATE SECONDS\n"); return 2; }
  static const double bounds[] = {10, 25, 50};
  double rate = atof(word[1]), due = now_us() + 1e4, end = due + atof(word[2]) * 1e6, count = 0, within[3] = {0};
  for (; due < end; due -= log(drand48() + 0x1p-54) / rate * 1e6, count++) {
    double late;
    while ((late = now_us() - due) < 0) ;
    for (int i = 0; i < 3; i++) within[i] += late <= bounds[i];
  }
  for (int i = 0; i < 3; i++) printf("%.4f%c", 100 * within[i] / count, i < 2 ? ' ' : '\n');
}
