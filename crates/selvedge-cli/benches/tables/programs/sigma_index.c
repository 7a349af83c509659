/* Main counts an index up before it creates each of N threads, which mark the place that it has come to. */
#include "rounds.h"

static shared next;
static shared marks[N + 1];

static void *worker(void *unused)
{
    marks[atomic_load(&next)] = 1;
    return unused;
}

int main(void)
{
    pthread_t threads[N];
    for (int i = 0; i < N; i++) {
        next = next + 1;
        pthread_create(&threads[i], NULL, worker, NULL);
    }
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
