// executions: 3328
// Ten writers and a searcher.
#include "run.h"

enum { WRITERS = 10 };

static atomic_int array[WRITERS + 1];

BODY(searcher)
{
    int i = WRITERS;
    while (atomic_load(&array[i]) != 0)
        i--;
    return NULL;
}

static void *writer(void *element)
{
    atomic_int *at = element;
    atomic_store(at, atomic_load(at - 1) + 1);
    return NULL;
}

int main(void)
{
    pthread_t threads[WRITERS + 1];
    pthread_create(&threads[0], NULL, searcher, NULL);
    for (int j = 1; j <= WRITERS; j++)
        pthread_create(&threads[j], NULL, writer, &array[j]);
    for (int i = 0; i <= WRITERS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
