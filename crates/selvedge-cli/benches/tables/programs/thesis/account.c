// A deposit, a withdrawal and an audit under one lock: 3! = 6 orders.
#include "local.h"
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

enum { START = 1, IN = 2, OUT = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = START;
static int deposited, withdrawn;

static void *audit(void *unused) {
    (void)unused;
    LOCAL_STEP(0);
    pthread_mutex_lock(&lock);
    assert(!deposited || !withdrawn || balance == START + IN - OUT);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *deposit(void *unused) {
    (void)unused;
    LOCAL_STEP(1);
    pthread_mutex_lock(&lock);
    balance += IN;
    deposited = 1;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *withdraw(void *unused) {
    (void)unused;
    LOCAL_STEP(2);
    pthread_mutex_lock(&lock);
    balance -= OUT;
    withdrawn = 1;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, audit, NULL);
    pthread_create(&threads[1], NULL, deposit, NULL);
    pthread_create(&threads[2], NULL, withdraw, NULL);
    return 0;
}
