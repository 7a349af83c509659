/* Eight threads add one to a sum, and each of them looks away between reading and writing it. */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

#ifndef N
#define N 8
#endif

static int sum;

static void *add(void *unused)
{
    int seen = sum;
    usleep(20);
    sum = seen + 1;
    return unused;
}

int main(void)
{
    pthread_t threads[N];
    for (int i = 0; i < N; i++)
        pthread_create(&threads[i], NULL, add, NULL);
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    assert(sum == N);
    return 0;
}
