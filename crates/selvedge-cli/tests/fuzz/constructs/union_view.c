/* The same bytes in several sizes, some of them volatile. */
#include "construct.h"

union view { long whole; int half[2]; volatile short quarter[4]; unsigned char bytes[8]; };

static unsigned body(void) {
    union view u;
    u.whole = 0x0102030405060708;
    unsigned all = u.quarter[1];
    u.quarter[2] = 9;
    all = all * 3 + u.half[1];
    u.bytes[3] = 7;
    all = all * 3 + u.half[0];
    volatile union view *p = &u;
    p->half[1] = 3;
    return all + (unsigned)(p->whole >> 24);
}
