/* One thread looks for the last zero of an array; each of the others makes an element one more than the element
 * before it. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#ifndef N
#define N 15
#endif

static int array[N + 1];

static void *searches(void *unused)
{
    int i = N;
    while (array[i] != 0)
        i--;
    return unused;
}

static void *writes(void *number)
{
    intptr_t j = (intptr_t)number;
    array[j] = array[j - 1] + 1;
    return NULL;
}

int main(void)
{
    pthread_t threads[N + 1];
    pthread_create(&threads[0], NULL, searches, NULL);
    for (intptr_t j = 1; j <= N; j++)
        pthread_create(&threads[j], NULL, writes, (void *)j);
    for (int j = 0; j <= N; j++)
        pthread_join(threads[j], NULL);
    return 0;
}
