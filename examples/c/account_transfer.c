/*
 * Transfers between accounts, each with its own lock, taken in the order of their addresses.
 *
 * Every transfer is one block under both locks, so the executions are the orders of transfers that
 * share an account. Three transfers round three accounts: each pair shares one, 3! = 6.
 *
 * Check:    selvedge verify examples/c/account_transfer.c
 * Expected: verified
 * Source:   folklore
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#ifndef THREADS
#define THREADS 3
#endif

struct account {
    pthread_mutex_t lock;
    int balance;
};

static struct account accounts[THREADS];

static void transfer(struct account *from, struct account *to, int amount)
{
    struct account *first = from < to ? from : to;
    struct account *second = from < to ? to : from;
    pthread_mutex_lock(&first->lock);
    pthread_mutex_lock(&second->lock);
    from->balance -= amount;
    to->balance += amount;
    pthread_mutex_unlock(&second->lock);
    pthread_mutex_unlock(&first->lock);
}

static void *worker(void *arg)
{
    intptr_t me = (intptr_t)arg;
    transfer(&accounts[me], &accounts[(me + 1) % THREADS], 10);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        pthread_mutex_init(&accounts[i].lock, NULL);
        accounts[i].balance = 100;
    }
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        assert(accounts[i].balance == 100);
    return 0;
}
