/* A thread writes y N times in each of two critical sections; to see y at 3 takes a chain of switches. */
#include "rounds.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static shared x, y;

static void *writer(void *unused)
{
    for (int section = 0; section < 2; section++) {
        pthread_mutex_lock(&lock);
        x = 1;
        for (int i = 0; i < N; i++)
            y = 1;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void *resets(void *unused)
{
    for (int section = 0; section < 2; section++) {
        pthread_mutex_lock(&lock);
        x = 0;
        pthread_mutex_unlock(&lock);
        if (x > 0) {
            int seen = y;
            y = seen + 1;
            x = 2;
        }
    }
    return unused;
}

static void *checks(void *unused)
{
    for (int check = 0; check < 2; check++) {
        if (x > 1) {
            if (y == 3)
                return unused;
            y = 2;
        }
    }
    return unused;
}

int main(void)
{
    run(3, (void *(*const[])(void *)){writer, resets, checks});
    return 0;
}
