/* Four threads in endless loops, each of which takes two of three mutexes and counts up to three; the last one can
 * end up in a circle with one or two of the others. A fifth one, which holds no lock, goes on for ever.
 *
 * -DTHREADS=4    how many of the four there are; the last one is always among them */
#include <pthread.h>
#include <stdatomic.h>

#ifndef THREADS
#define THREADS 4
#endif

static pthread_mutex_t mutex[3] = {
    PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER,
};
static int first[4] = {0, 1, 0, 2};
static int second[4] = {1, 2, 2, 0};
static int counter[3];
static atomic_int lights;

static void *work(void *number) {
    int one = first[(long)number];
    int other = second[(long)number];
    for (;;) {
        pthread_mutex_lock(&mutex[one]);
        pthread_mutex_lock(&mutex[other]);
        /* Whoever counts here holds the mutex of that number. */
        counter[one] = (counter[one] + 1) % 3;
        pthread_mutex_unlock(&mutex[other]);
        pthread_mutex_unlock(&mutex[one]);
    }
}

static void *blink(void *unused) {
    for (;;) {
        atomic_store(&lights, 1);
        atomic_store(&lights, 0);
    }
    return unused;
}

int main(void) {
    pthread_t threads[THREADS + 1];
    pthread_create(&threads[THREADS], NULL, blink, NULL);
    for (long i = 4 - THREADS; i < 4; i++)
        pthread_create(&threads[i - (4 - THREADS)], NULL, work, (void *)i);
    pthread_exit(NULL);
}
