// executions: 51318
// options: --plain sc
// Three threads, two increments and a look each; main does not wait for them.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static int x;

static void *worker(void *unused)
{
    x++;
    x++;
    assert(0 < x);
    return unused;
}

int main(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    return 0;
}
