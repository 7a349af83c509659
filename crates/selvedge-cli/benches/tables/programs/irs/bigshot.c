/* One thread makes room for a text, the other one writes it there if there is room. */
#include <pthread.h>
#include <stdlib.h>

static char *text;

static void *makes_room(void *unused)
{
    text = calloc(8, 1);
    return unused;
}

static void *writes(void *unused)
{
    char *to = text;
    if (to != NULL)
        to[0] = 'b';
    return unused;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, makes_room, NULL);
    pthread_create(&two, NULL, writes, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return text == NULL;
}
