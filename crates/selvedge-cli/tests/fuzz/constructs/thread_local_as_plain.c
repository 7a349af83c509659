/* A thread-local variable that is volatile or atomic here, and plain there. */
#include "construct.h"
#include <stdatomic.h>
#include <string.h>

static __thread volatile int one;
static __thread atomic_int two;
static __thread struct pair { volatile int first; int second; } pair;

FUNCTION int *plain(void) { return (int *)&one; }

static unsigned body(void) {
    unsigned all = 0;
    for (int i = 0; i < 3; i++) {
        one += i;
        *plain() = one * 7 + 1;
        all = all * 31 + one;
        two += i;
        memset((void *)&two, i + 1, 3);
        all = all * 31 + two;
        pair.first += 5;
        pair = (struct pair){pair.first + i, 3};
        all = all * 31 + pair.first + pair.second;
        memcpy((void *)&pair, (void *)&two, 4);
        all = all * 31 + pair.first;
    }
    return all;
}
