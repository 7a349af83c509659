// executions: 6
// blocked: 0
// 3! orders of the critical sections.
#include "run.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

BODY(worker)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return NULL;
}

RUN(worker, worker, worker)
