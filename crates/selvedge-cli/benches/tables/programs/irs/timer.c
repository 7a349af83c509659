/* Loaded before a program that is measured: tells how long it took, from before its first constructor to its end.
 * Neither starting the process nor loading its libraries counts. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static struct timespec begin;

__attribute__((constructor)) static void start(void)
{
    clock_gettime(CLOCK_MONOTONIC, &begin);
}

__attribute__((destructor)) static void stop(void)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    const char *file = getenv("SELVEDGE_TIMER");
    if (!file)
        return;
    int64_t time = (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec;
    (void)!write(atoi(file), &time, sizeof time);
}
