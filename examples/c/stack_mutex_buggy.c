/*
 * A stack whose users ask whether it is empty under one hold of the lock and pop under another.
 *
 * Check:    selvedge verify examples/c/stack_mutex_buggy.c
 * Expected: bug, an assertion: a pop from an empty stack
 * Source:   theme of SV-COMP's pthread/stack, written anew
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int height;

static int is_empty(void)
{
    pthread_mutex_lock(&lock);
    int empty = height == 0;
    pthread_mutex_unlock(&lock);
    return empty;
}

static void pop(void)
{
    pthread_mutex_lock(&lock);
    assert(height > 0);
    height--;
    pthread_mutex_unlock(&lock);
}

static void *popper(void *unused)
{
    (void)unused;
    if (!is_empty())
        pop();
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    height = 1;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, popper, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
