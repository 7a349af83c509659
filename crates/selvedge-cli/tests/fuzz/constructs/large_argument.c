/* A structure is passed on the stack. */
#include "construct.h"

struct s { long a, b, c, d; };

FUNCTION unsigned get(struct s s) {
    volatile struct s *p = &s;
    return p->a * 10 + p->d;
}

static unsigned body(void) {
    unsigned first = get((struct s){1, 2, 3, 4});
    return first * 100 + get((struct s){5, 6, 7, 8});
}
