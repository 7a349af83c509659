/*
 * Two deposits that hold the lock, but not from the reading to the writing.
 *
 * There is no data race, and still an update can be lost.
 *
 * Check:    selvedge verify examples/c/account_lost_update.c
 * Expected: bug, an assertion: the balance is short of one deposit
 * Source:   folklore; a benchmark theme since Y. Eytani, S. Ur, 2004
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 2
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance;

static int get_balance(void)
{
    pthread_mutex_lock(&lock);
    int b = balance;
    pthread_mutex_unlock(&lock);
    return b;
}

static void set_balance(int b)
{
    pthread_mutex_lock(&lock);
    balance = b;
    pthread_mutex_unlock(&lock);
}

static void *deposit(void *unused)
{
    (void)unused;
    set_balance(get_balance() + 10);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, deposit, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(balance == 10 * THREADS);
    return 0;
}
