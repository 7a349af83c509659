/* The worker relies on what main sets up only after it has created the worker. */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static int *settings;
static int values[2] = {1, 2};

static void *work(void *unused)
{
    assert(settings != NULL);
    assert(settings[1] == 2);
    return unused;
}

int main(void)
{
    pthread_t workers[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&workers[i], NULL, work, NULL);
    usleep(10);
    settings = values;
    for (int i = 0; i < 3; i++)
        pthread_join(workers[i], NULL);
    return 0;
}
