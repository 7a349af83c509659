/* Loaded before a program that is measured: tells how long it took, from before its first constructor to its end.
 * Neither starting the process nor loading its libraries counts. */
#include <fcntl.h>
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
    const char *name = getenv("SELVEDGE_TIMES");
    int file = name ? open(name, O_WRONLY | O_APPEND) : -1;
    if (file < 0)
        return;
    int64_t time = (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec;
    (void)!write(file, &time, sizeof time);
    close(file);
}
