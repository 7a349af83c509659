/* Included before every C file that gcc compiles for Selvedge.
 *
 * -fno-builtin keeps calls such as memset(p, 0, 24) calls. Spelled __builtin_memset they would still
 * be expanded in place, after the instrumentation, and touch memory that nobody hears of. */
#ifndef SELVEDGE_BUILTINS_H
#define SELVEDGE_BUILTINS_H

void *selvedge_builtin_memcpy(void *, const void *, __SIZE_TYPE__) __asm__("memcpy");
void *selvedge_builtin_memmove(void *, const void *, __SIZE_TYPE__) __asm__("memmove");
void *selvedge_builtin_memset(void *, int, __SIZE_TYPE__) __asm__("memset");
char *selvedge_builtin_strcpy(char *, const char *) __asm__("strcpy");
char *selvedge_builtin_strncpy(char *, const char *, __SIZE_TYPE__) __asm__("strncpy");
char *selvedge_builtin_strcat(char *, const char *) __asm__("strcat");

#define __builtin_memcpy selvedge_builtin_memcpy
#define __builtin_memmove selvedge_builtin_memmove
#define __builtin_memset selvedge_builtin_memset
#define __builtin_bzero(p, n) ((void)selvedge_builtin_memset(p, 0, n))
#define __builtin_strcpy selvedge_builtin_strcpy
#define __builtin_strncpy selvedge_builtin_strncpy
#define __builtin_strcat selvedge_builtin_strcat

#endif
