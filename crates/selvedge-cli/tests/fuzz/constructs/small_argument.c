/* A structure is passed in registers. */
#include "construct.h"

struct s { int a; int b; };

FUNCTION unsigned get(struct s s) {
    volatile struct s *p = &s;
    return p->a * 10 + p->b;
}

static unsigned body(void) {
    unsigned first = get((struct s){1, 2});
    return first * 100 + get((struct s){3, 4});
}
