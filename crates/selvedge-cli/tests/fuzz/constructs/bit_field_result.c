/* A bit field of a local structure, through pointers and by value, beside a volatile pointer. */
#include "construct.h"

struct s { unsigned value : 16; };

FUNCTION void add(struct s *s, int k) { s->value += k; }
FUNCTION unsigned get(const volatile struct s *s) { return s->value; }
FUNCTION struct s more(struct s s, int k) { s.value += k; return s; }
FUNCTION unsigned sum(struct s s) { return s.value; }

FUNCTION unsigned use(unsigned all) {
    unsigned escaped = all;
    unsigned *volatile p = &escaped;
    *p += 1;
    all += escaped;
    struct s s;
    memset(&s, 0, sizeof s);
    add(&s, 3);
    all = all * 10 + get(&s);
    s = more(s, 3);
    return all * 10 + sum(s);
}

static unsigned body(void) { return use(0); }
