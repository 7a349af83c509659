/* A structure copy over volatile members. */
#include "construct.h"

struct s { volatile int x; volatile int y; };
static struct s g;

static unsigned body(void) {
    struct s local = {1, 2};
    g = local;
    g.x = 5;
    local = g;
    return local.x * 10 + local.y;
}
