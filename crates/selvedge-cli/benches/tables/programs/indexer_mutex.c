/* N threads insert four numbers each into a table of 128 cells, each cell with a mutex of its own. */
#include "rounds.h"

enum { CELLS = 128, MESSAGES = 4 };

static pthread_mutex_t locks[CELLS];
static int cells[CELLS];

static int claim(int cell, int message)
{
    pthread_mutex_lock(&locks[cell]);
    int free = cells[cell] == 0;
    if (free)
        cells[cell] = message;
    pthread_mutex_unlock(&locks[cell]);
    return free;
}

static void *worker(void *arg)
{
    for (int m = 1; m <= MESSAGES; m++) {
        int message = m * 11 + (int)(intptr_t)arg;
        int cell = message * 7 % CELLS;
        while (!claim(cell, message))
            cell = (cell + 1) % CELLS;
    }
    return NULL;
}

int main(void)
{
    void *(*bodies[N])(void *);
    for (int i = 0; i < CELLS; i++)
        pthread_mutex_init(&locks[i], NULL);
    for (int i = 0; i < N; i++)
        bodies[i] = worker;
    run(N, bodies);
    return 0;
}
