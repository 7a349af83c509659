/* memset, memcpy and strcpy beside volatile accesses. */
#include "construct.h"

static char text[16];

static unsigned body(void) {
    volatile char *p = text;
    strcpy(text, "abc");
    unsigned all = p[1];
    memset(text, 'x', 8);
    all += p[1];
    memmove(text + 1, "qrs", 3);
    all = all * 3 + p[1];
    char local[8];
    volatile char *q = local;
    memset(local, 1, 8);
    all += q[3];
    memcpy(local, text, 8);
    return all * 3 + q[1];
}
