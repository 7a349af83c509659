/* The result of a call becomes a local structure, again and again. */
#include "construct.h"

struct s { volatile int value; };

FUNCTION struct s make(int k) { struct s s; s.value = k; return s; }

static unsigned body(void) {
    struct s s;
    unsigned all = 0;
    for (int i = 1; i < 4; i++) {
        s = make(i);
        all = all * 10 + s.value;
    }
    return all;
}
