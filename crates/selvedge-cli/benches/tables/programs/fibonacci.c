/* Two threads that keep adding the other one's variable to their own, and a look at both meanwhile. */
#include "rounds.h"

static shared a = 1, b = 1;

static void *adds_to_a(void *unused)
{
    for (int i = 0; i < N; i++) {
        int own = a, other = b;
        a = own + other;
    }
    return unused;
}

static void *adds_to_b(void *unused)
{
    for (int i = 0; i < N; i++) {
        int own = b, other = a;
        b = own + other;
    }
    return unused;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, adds_to_a, NULL);
    pthread_create(&two, NULL, adds_to_b, NULL);
    (void)a;
    (void)b;
    return 0;
}
