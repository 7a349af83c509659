/* An atomic local variable begins anew in each round. */
#include "construct.h"

static unsigned body(void) {
    unsigned all = 0;
    for (int i = 0; i < 3; i++) {
        _Atomic int a = i;
        all = all * 10 + a;
        a += 2;
        all = all * 10 + a;
    }
    return all;
}
