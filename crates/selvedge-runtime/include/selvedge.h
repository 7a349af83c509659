/*
 * What a program can tell Selvedge. Include it as "selvedge.h"; `selvedge verify` finds it.
 */
#ifndef SELVEDGE_H
#define SELVEDGE_H

#ifdef __cplusplus
extern "C" {
#endif

/* A number below `alternatives`; every one of them is explored. */
unsigned selvedge_choose(unsigned alternatives);

/* A number from `low` to `high`, both included; every one of them is explored. */
int selvedge_range(int low, int high);

/* Executions in which `condition` is zero are of no interest. */
void selvedge_assume(int condition);

/* Reports a bug if `condition` is zero; works with NDEBUG too. */
#define selvedge_assert(condition) ((condition) ? (void)0 : selvedge_assert_fail(#condition))

/* What selvedge_assert comes to. */
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void selvedge_assert_fail(const char *expression);

/*
 * From now on the proposition `name` holds, or does not if `condition` is zero. Formulas (--ltl) can speak of it.
 * At first no proposition holds.
 */
void selvedge_prop(const char *name, int condition);

/* A progress mark: who passes it gets on (--property non-progress, --property starvation). */
void selvedge_progress(void);

#ifdef __cplusplus
}
#endif

#endif
