/* A volatile word and its volatile bytes, shared with nobody. */
#include "construct.h"

static union { volatile unsigned word; volatile unsigned char bytes[4]; } u;

static unsigned body(void) {
    for (int i = 0; i < 4; i++) u.bytes[i] = i + 1;
    unsigned word = u.word;
    u.word = 0x01010101;
    return word + u.bytes[2];
}
