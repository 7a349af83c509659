/* Runs each body in a thread of its own and waits for all of them. */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

typedef void *body(void *);

static inline void run_all(int n, body *const bodies[])
{
    pthread_t threads[8];
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, bodies[i], NULL);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

/* A thread's body; its argument is NULL. */
#define BODY(name) static void *name(void *unused __attribute__((unused)))
#define RUN(...)                                                                                   \
    int main(void)                                                                                 \
    {                                                                                              \
        body *const bodies[] = {__VA_ARGS__};                                                      \
        run_all(sizeof bodies / sizeof *bodies, bodies);                                           \
        return 0;                                                                                  \
    }
