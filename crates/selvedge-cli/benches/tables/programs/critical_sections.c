/* Two threads, N critical sections each, in all of which one counter is changed. */
#include "rounds.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void *up(void *unused)
{
    for (int i = 0; i < N; i++) {
        pthread_mutex_lock(&lock);
        counter++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void *down(void *unused)
{
    for (int i = 0; i < N; i++) {
        pthread_mutex_lock(&lock);
        if (counter > 0)
            counter--;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void)
{
    run(2, (void *(*const[])(void *)){up, down});
    return 0;
}
