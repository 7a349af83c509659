/* Random numbers of which every one is tried, out of so many: selvedge verify … --stub examples/stubs/any_random.c */
#include <selvedge.h>
#include <stdlib.h>

#ifndef ANY_RANDOM
#define ANY_RANDOM 3
#endif

int rand(void) { return (int)selvedge_choose(ANY_RANDOM); }
long random(void) { return (long)selvedge_choose(ANY_RANDOM); }
