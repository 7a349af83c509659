/*
 * An update in two stages under two locks; a reader can come between the stages.
 *
 * Check:    selvedge verify examples/c/twostage.c
 * Expected: bug, an assertion: the second value does not follow from the first
 * Source:   theme of E. Farchi, Y. Nir, S. Ur, "Concurrent Bug Patterns and How to Test Them",
 *           2003, written anew
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second_lock = PTHREAD_MUTEX_INITIALIZER;
static int first, second;

static void *writer(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&first_lock);
    first = 1;
    pthread_mutex_unlock(&first_lock);
    pthread_mutex_lock(&second_lock);
    second = 2;
    pthread_mutex_unlock(&second_lock);
    return NULL;
}

static void *reader(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&first_lock);
    int f = first;
    pthread_mutex_unlock(&first_lock);
    if (f == 0)
        return NULL;
    pthread_mutex_lock(&second_lock);
    int s = second;
    pthread_mutex_unlock(&second_lock);
    assert(s == f + 1);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, writer, NULL);
    pthread_create(&threads[1], NULL, reader, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
