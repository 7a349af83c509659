/* The variables of the environment; it begins with A=1 and B=2=3. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int early;
__attribute__((constructor)) static void before_main(void) {
  early = getenv("A") && !strcmp(getenv("A"), "1") && environ && !strcmp(environ[0], "A=1");
}
int main(int count, char **words, char **variables) {
  static char mine[] = "D=4";
  assert(early);
  assert(!strcmp(environ[0], "A=1") && !strcmp(environ[1], "B=2=3") && !environ[2]);
  assert(!strcmp(getenv("B"), "2=3") && !getenv("C") && !getenv("A=1"));
  assert(!setenv("A", "x", 0) && !strcmp(getenv("A"), "1"));
  assert(!setenv("A", "x", 1) && !strcmp(getenv("A"), "x"));
  assert(!setenv("C", "", 0) && !strcmp(getenv("C"), "") && !environ[3]);
  assert(setenv("E=", "", 0) == -1 && errno == EINVAL && unsetenv("") == -1);
  assert(!putenv(mine) && getenv("D") == mine + 2);
  assert(!putenv("C") && !getenv("C") && !strcmp(environ[2], "D=4") && !environ[3]);
  assert(!unsetenv("B") && !getenv("B") && !unsetenv("B"));
  assert(!clearenv() && !getenv("A") && !environ);
  assert(!setenv("F", "6", 1) && !strcmp(secure_getenv("F"), "6") && !environ[1]);
  return 0;
}
