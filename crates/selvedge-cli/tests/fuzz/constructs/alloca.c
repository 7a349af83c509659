/* Memory from alloca at addresses that are used again. */
#include "construct.h"

FUNCTION unsigned last(int n) {
    volatile int *p = __builtin_alloca(n * sizeof *p);
    for (int i = 0; i < n; i++) p[i] = i * n;
    return p[n - 1];
}

static unsigned body(void) {
    unsigned all = last(3);
    all = all * 100 + last(5);
    return all * 100 + last(2);
}
