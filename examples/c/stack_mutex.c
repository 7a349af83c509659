/*
 * A bounded stack under one lock: one thread pushes, one pops when there is something.
 *
 * Check:    selvedge verify examples/c/stack_mutex.c
 * Expected: verified; with k pushes and k attempts to pop, the orders of the critical sections are
 *           C(2k, k), here C(6, 3) = 20 executions
 * Source:   theme of SV-COMP's pthread/stack, written anew
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#ifndef SIZE
#define SIZE 3
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int stack[SIZE];
static int height;

static void *pusher(void *unused)
{
    (void)unused;
    for (int i = 0; i < SIZE; i++) {
        pthread_mutex_lock(&lock);
        assert(height < SIZE);
        stack[height++] = i;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *popper(void *unused)
{
    (void)unused;
    for (int i = 0; i < SIZE; i++) {
        pthread_mutex_lock(&lock);
        if (height > 0) {
            int value = stack[--height];
            assert(0 <= value && value < SIZE);
        }
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, pusher, NULL);
    pthread_create(&threads[1], NULL, popper, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
