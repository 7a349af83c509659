/* The pool of threads in zstd: one thread, two jobs. */
#include <assert.h>
#include <pthread.h>
#include "pool.h"

#ifdef WEAK
/* A signal that wakes nobody: the program's own definition wins. */
int pthread_cond_signal(pthread_cond_t *unused) { return 0; }
#endif

static int done[2];

static void job(void *number) { done[(long)number] = 1; }

int main(void) {
    POOL_ctx *pool = POOL_create(1, 1);
    assert(pool);
    POOL_add(pool, job, (void *)0);
    POOL_add(pool, job, (void *)1);
    POOL_joinJobs(pool);
    assert(done[0] && done[1]);
    POOL_free(pool);
    return 0;
}
