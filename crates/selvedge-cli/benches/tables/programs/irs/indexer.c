/* N threads insert four numbers each into a table of 128 cells; which is free is decided by compare and exchange. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#ifndef N
#define N 15
#endif

enum { CELLS = 128, MESSAGES = 4 };

static int cells[CELLS];

static void *insert(void *number)
{
    for (int m = 1; m <= MESSAGES; m++) {
        int message = m * 11 + (int)(intptr_t)number, cell = message * 7 % CELLS;
        for (int free = 0; !__atomic_compare_exchange_n(&cells[cell], &free, message, 0, __ATOMIC_SEQ_CST,
                                                         __ATOMIC_SEQ_CST);
             free = 0)
            cell = (cell + 1) % CELLS;
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[N];
    for (intptr_t i = 0; i < N; i++)
        pthread_create(&threads[i], NULL, insert, (void *)i);
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
