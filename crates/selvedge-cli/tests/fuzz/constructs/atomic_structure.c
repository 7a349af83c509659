/* An atomic structure of eight bytes. */
#include "construct.h"

struct pair { _Alignas(8) int a; int b; };

static unsigned body(void) {
    unsigned all = 0;
    for (int i = 0; i < 3; i++) {
        _Atomic struct pair p = (struct pair){i, 2};
        struct pair q = atomic_load(&p);
        q.a += 3;
        atomic_store(&p, q);
        q = atomic_exchange(&p, ((struct pair){7, 7}));
        all = all * 10 + q.a;
    }
    return all;
}
