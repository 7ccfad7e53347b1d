// Reads SIZE bytes COUNT times at positions in turn of FILE, as fast as one thread can, with a reading of the clock before
// and after each call: what `bench/files_replay.py` compares the replayer with.
//
//     cc -O2 -o pread_loop bench/pread_loop.c && ./pread_loop FILE COUNT SIZE

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int fd = open(argv[1], O_RDONLY);
    long count = atol(argv[2]), size = atol(argv[3]);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) return 1;
    long bytes = status.st_size / size * size;
    char *buffer = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    long begin = now(), sum = 0;
    for (long n = 0; n < count; n++) {
        long issued = now();
        if (pread(fd, buffer, size, n * size % bytes) != size) return 1;
        sum += now() - issued;
    }
    double seconds = (now() - begin) / 1e9;
    printf("{\"calls_per_s\": %.0f, \"response_us\": %.3f}\n", count / seconds, sum / 1e3 / count);
    return 0;
}
