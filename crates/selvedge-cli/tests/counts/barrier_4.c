// executions: 24
// blocked: 0
// 4! orders of the arrivals at a barrier. A thread passes it when the last one has arrived.
#include "run.h"

static pthread_barrier_t barrier;

BODY(worker)
{
    pthread_barrier_wait(&barrier);
    return NULL;
}

int main(void)
{
    body *const bodies[] = {worker, worker, worker, worker};
    pthread_barrier_init(&barrier, NULL, 4);
    run_all(4, bodies);
    return 0;
}
