/* Atomic local variables of other sizes. */
#include "construct.h"

static unsigned body(void) {
    unsigned all = 0;
    for (int i = 1; i < 4; i++) {
        _Atomic long l = i;
        l *= 3;
        _Atomic unsigned char c = i;
        c--;
        _Atomic short h = 7;
        h ^= i;
        all = all * 100 + l + c + h;
    }
    return all;
}
