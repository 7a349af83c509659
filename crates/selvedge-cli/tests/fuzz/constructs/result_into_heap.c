/* The result of a call becomes a structure on the heap. */
#include "construct.h"

struct s { volatile int value; };

FUNCTION unsigned get(const struct s *s) { return s->value; }
FUNCTION struct s make(int k) { struct s s; s.value = k; return s; }

static unsigned body(void) {
    struct s *heap = malloc(sizeof *heap);
    *heap = make(1);
    unsigned first = get(heap);
    *heap = make(3);
    unsigned both = first * 10 + get(heap);
    free(heap);
    return both;
}
