/* A node of a queue lock: a plain initialisation, then atomic accesses, in a frame that is used again. */
#include "construct.h"

struct node { _Atomic(struct node *) next; _Atomic int locked; };

FUNCTION unsigned use(int k) {
    struct node node = {0};
    unsigned found = atomic_load(&node.locked);
    atomic_store(&node.locked, k);
    atomic_store(&node.next, &node);
    return found * 10 + (atomic_load(&node.next) == &node);
}

static unsigned body(void) {
    use(1);
    return use(2);
}
