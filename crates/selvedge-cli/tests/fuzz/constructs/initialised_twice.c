/* atomic_init is a plain write. */
#include "construct.h"

static unsigned body(void) {
    _Atomic int a;
    atomic_init(&a, 1);
    unsigned first = atomic_load(&a);
    atomic_init(&a, 2);
    return first * 10 + atomic_load(&a);
}
