/* Arrays of fixed and of variable size at addresses that are used again. */
#include "construct.h"

static unsigned body(void) {
    unsigned all = 0;
    for (int k = 1; k < 4; k++) {
        volatile int fixed[4] = {1, 2, 3, k};
        int sized[k + 1];
        for (int n = 0; n <= k; n++) sized[n] = n;
        volatile int *p = sized;
        p[k] += fixed[k & 3];
        all = all * 7 + p[k];
        fixed[k & 3] = 9;
        all = all * 7 + fixed[k & 3] + sized[k];
    }
    return all;
}
