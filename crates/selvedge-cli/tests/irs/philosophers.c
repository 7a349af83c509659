/* Everybody takes the fork to his left and then waits for the one to his right. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#ifndef N
#define N 3
#endif

static pthread_mutex_t forks[N];
static pthread_barrier_t table;
static int meals;

static void *eat(void *number)
{
    int me = (int)(intptr_t)number;
    pthread_barrier_wait(&table);
    pthread_mutex_lock(&forks[me]);
    usleep(20);
    pthread_mutex_lock(&forks[(me + 1) % N]);
    __atomic_fetch_add(&meals, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&forks[(me + 1) % N]);
    pthread_mutex_unlock(&forks[me]);
    return NULL;
}

int main(void)
{
    pthread_t threads[N];
    pthread_barrier_init(&table, NULL, N);
    for (int i = 0; i < N; i++)
        pthread_mutex_init(&forks[i], NULL);
    for (intptr_t i = 0; i < N; i++)
        pthread_create(&threads[i], NULL, eat, (void *)i);
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    return meals != N;
}
