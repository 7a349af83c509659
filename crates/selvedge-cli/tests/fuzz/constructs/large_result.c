/* A large structure is returned into memory. */
#include "construct.h"

struct s { long a[4]; };

FUNCTION struct s make(long k) { return (struct s){{k, k + 1, k + 2, k + 3}}; }
FUNCTION unsigned get(const volatile struct s *s) { return s->a[0] * 10 + s->a[3]; }

static unsigned body(void) {
    struct s s = make(1);
    unsigned all = get(&s);
    s = make(2);
    all = all * 100 + get(&s);
    s = make(3);
    return all * 100 + get(&s);
}
