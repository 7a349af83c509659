/*
 * A construct defines `unsigned body(void)`. Natively its value is printed; under Selvedge it is compared with EXPECT.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION __attribute__((noinline)) static

static unsigned body(void);

int main(void) {
    unsigned result = body();
#ifdef EXPECT
    COMPARE(result);
#else
    printf("checksum = %X\n", result);
#endif
    return 0;
}
