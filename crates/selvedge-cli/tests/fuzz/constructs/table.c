/* A table that optimised code fills with wide stores. */
#include "construct.h"

static int table[64];

static unsigned body(void) {
    for (int i = 0; i < 64; i++) table[i] = i;
    unsigned all = 0;
    for (int i = 0; i < 64; i += 3) all = all * 3 + table[i];
    return all;
}
