/* A queue that one of N threads that fill it and one of N - 1 threads that empty it work at in turn, each under the
 * lock and only if it is their turn (after queue_ok of SV-COMP). There is one class for each order of the
 * 2N - 1 critical sections. */
#include "rounds.h"

enum { SIZE = 12 };

static shared cells[SIZE], kept[SIZE], head, tail, amount, may_fill = 1, may_empty;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int next(int place)
{
    return place == SIZE - 1 ? 0 : place + 1;
}

static void *fill(void *arg)
{
    int value = (int)(intptr_t)arg;
    pthread_mutex_lock(&mutex);
    if (may_fill) {
        for (int i = 0; i < SIZE && amount != SIZE; i++) {
            value += i;
            cells[tail] = value;
            amount = amount + 1;
            tail = next(tail);
            kept[i] = value;
        }
        may_fill = 0;
        may_empty = 1;
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void *empty(void *unused)
{
    pthread_mutex_lock(&mutex);
    if (may_empty) {
        for (int i = 0; i < SIZE && amount != 0; i++) {
            int value = cells[head];
            if (value == kept[i]) {
                amount = amount - 1;
                head = next(head);
            }
        }
        may_empty = 0;
        may_fill = 1;
    }
    pthread_mutex_unlock(&mutex);
    return unused;
}

int main(void)
{
    void *(*bodies[2 * N - 1])(void *);
    for (int i = 0; i < 2 * N - 1; i++)
        bodies[i] = i < N ? fill : empty;
    run(2 * N - 1, bodies);
    return 0;
}
