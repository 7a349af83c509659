/* Arguments of a variadic function. */
#include "construct.h"

FUNCTION unsigned sum(int n, ...) {
    va_list list;
    va_start(list, n);
    unsigned all = 0;
    for (int i = 0; i < n; i++) {
        volatile int v = va_arg(list, int);
        all = all * 10 + v;
    }
    va_end(list);
    return all;
}

static unsigned body(void) {
    unsigned first = sum(3, 1, 2, 3);
    return first * 1000 + sum(8, 4, 5, 6, 7, 8, 9, 1, 2);
}
