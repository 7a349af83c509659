/* A structure that is copied by a loop or a string instruction. */
#include "construct.h"

struct s { volatile long a[20]; };
static struct s one, two;

FUNCTION void fill(struct s *s, long k) {
    for (int i = 0; i < 20; i++) s->a[i] = k + i;
}

static unsigned body(void) {
    fill(&one, 1);
    two = one;
    unsigned first = two.a[19];
    fill(&one, 5);
    two = one;
    struct s local = two;
    return first * 100 + two.a[19] + local.a[3];
}
