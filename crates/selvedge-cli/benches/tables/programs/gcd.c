/* The greatest common divisor of 17 and 7 by two threads, one of which subtracts in one direction and one in the
 * other, each N times at most (VerifyThis 2015, challenge 2). What is compared is read anew each time. */
#include "rounds.h"

static shared a = 17, b = 7;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *subtract(void *arg)
{
    shared *larger = arg ? &b : &a, *smaller = arg ? &a : &b;
    int one, other;
    for (int i = 0; i < N; i++) {
        one = a, other = b;
        if (one != other) {
            pthread_mutex_lock(&mutex);
            one = *larger, other = *smaller;
            if (one > other) {
                one = *larger, other = *smaller;
                *larger = one - other;
            }
            pthread_mutex_unlock(&mutex);
            one = a, other = b;
        }
    }
    return NULL;
}

int main(void)
{
    run(2, (void *(*const[])(void *)){subtract, subtract});
    return 0;
}
