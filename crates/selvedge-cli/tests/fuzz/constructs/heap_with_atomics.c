/* Heap blocks with atomic, volatile and plain members, which are also written as a whole. */
#include "construct.h"

struct s { _Atomic int a; volatile int b; int c; };

static unsigned body(void) {
    unsigned all = 0;
    for (int i = 1; i < 4; i++) {
        struct s *s = malloc(sizeof *s);
        *s = (struct s){i, i, i};
        all = all * 10 + s->a + s->b + s->c;
        s->a = 7;
        s->b = 8;
        memset(s, 0, sizeof *s);
        all = all * 10 + s->a + s->b;
        struct s other = {i + 1, i + 1, 0};
        *s = other;
        all = all * 10 + s->a + s->b;
        free(s);
    }
    return all;
}
