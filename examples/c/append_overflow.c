/*
 * Appending to a heap array: the room is checked in one step and taken in another.
 *
 * Check:    selvedge verify examples/c/append_overflow.c
 * Expected: bug, a heap overflow: two threads take the last place
 * Source:   folklore
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

enum { ROOM = 1 };

static atomic_int length;
static int *array;

static void *appender(void *unused)
{
    (void)unused;
    if (atomic_load(&length) < ROOM)
        array[atomic_fetch_add(&length, 1)] = 42;
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    array = malloc(ROOM * sizeof *array);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, appender, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    free(array);
    return 0;
}
