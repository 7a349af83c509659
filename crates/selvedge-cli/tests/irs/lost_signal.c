/* The waiter looks whether there is something to wait for, and only then begins to wait: a signal in between is lost. */
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ready;

static void *waits(void *unused)
{
    int there = ready;
    usleep(20);
    pthread_mutex_lock(&lock);
    if (!there)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *signals(void *unused)
{
    usleep(10);
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, waits, NULL);
    pthread_create(&two, NULL, signals, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
