/*
 * Included before everything else in programs that compute a checksum.
 *
 * Under Selvedge the checksum is compared with EXPECT twice, in two executions: the first assertion must
 * hold, and the second must be reported. One search for both takes half the time of two.
 */
#ifdef EXPECT
#include <assert.h>
#include <selvedge.h>
#define COMPARE(sum)               \
    do {                           \
        if (selvedge_choose(2))    \
            assert((sum) == EXPECT); \
        else                       \
            assert((sum) != EXPECT); \
    } while (0)
#else
#include <sys/time.h>
/* Programs that do not end natively are left out. A limit on processor time does not depend on the load. */
__attribute__((constructor)) static void limit_time(void) {
    struct itimerval limit = {.it_value = {.tv_usec = 300000}};
    setitimer(ITIMER_PROF, &limit, 0);
}
#endif
