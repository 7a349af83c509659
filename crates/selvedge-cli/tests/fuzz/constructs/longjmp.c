/* A volatile variable across longjmp. */
#include "construct.h"

#include <setjmp.h>
static jmp_buf env;

FUNCTION void jump(volatile int *p, int k) {
    *p += k;
    longjmp(env, k);
}

static unsigned body(void) {
    volatile int v = 1, rounds = 0;
    if (setjmp(env) >= 0 && rounds < 3) {
        rounds = rounds + 1;
        jump(&v, rounds);
    }
    return v * 10 + rounds;
}
