/* Makes groups of calls to files with work in between, and prints how long it took.
 *
 * calls_loop FILE GROUPS WORK
 *
 * A group is 16 calls: open, 7 pread, 7 pwrite, close. WORK is the number of multiplications before each call. Prints calls,
 * wall time, processor time (all in the loop), in seconds. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

static void work(long steps)
{
	uint64_t x = 88172645463325252ull;

	for (long i = 0; i < steps; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	sink = x;
}

static double seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	char buffer[512] = {0};
	long groups, steps;
	double wall, processor;

	if (argc != 4)
		return 2;
	groups = atol(argv[2]);
	steps = atol(argv[3]);
	wall = seconds(CLOCK_MONOTONIC);
	processor = seconds(CLOCK_PROCESS_CPUTIME_ID);
	for (long i = 0; i < groups; i++) {
		int fd;

		work(steps);
		fd = open(argv[1], O_RDWR | O_CREAT, 0600);
		if (fd < 0)
			return 1;
		for (int j = 0; j < 7; j++) {
			work(steps);
			if (pwrite(fd, buffer, sizeof(buffer), j * 512) != sizeof(buffer))
				return 1;
			work(steps);
			if (pread(fd, buffer, sizeof(buffer), j * 512) != sizeof(buffer))
				return 1;
		}
		work(steps);
		close(fd);
	}
	printf("%ld %.6f %.6f\n", groups * 16, seconds(CLOCK_MONOTONIC) - wall,
	       seconds(CLOCK_PROCESS_CPUTIME_ID) - processor);
	return 0;
}
