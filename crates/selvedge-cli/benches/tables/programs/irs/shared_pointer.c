/* Two threads move a pointer that both of them write through. */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static int cells[2];
static int *place = &cells[0];

static void *first(void *unused)
{
    place = &cells[1];
    *place = 1;
    return unused;
}

static void *second(void *unused)
{
    *place = 2;
    place = &cells[0];
    return unused;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, first, NULL);
    pthread_create(&two, NULL, second, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    assert(cells[0] + cells[1] > 0);
    return 0;
}
