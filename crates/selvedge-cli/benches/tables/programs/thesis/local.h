// The compiled threads of the document's programs begin with instructions that touch no shared
// memory, and its tool schedules those like any other step. With -DLOCAL the threads here do the same.
#include <stdatomic.h>

#ifdef LOCAL
static atomic_int own[64];
#define LOCAL_STEP(thread) ((void)atomic_load(&own[thread]))
#else
#define LOCAL_STEP(thread) ((void)0)
#endif
