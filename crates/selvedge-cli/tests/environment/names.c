/* Files get other names, lose theirs, and are created for a while; a thread that replaces one is seen before or
 * after, and never in between. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void put(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static int has(const char *path, const char *text) {
    char line[16] = "";
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    fgets(line, sizeof line, file);
    fclose(file);
    return !strcmp(line, text);
}

static void *replace(void *unused) {
    assert(rename("new", "./config") == 0);
    return unused;
}

int main(void) {
    put("a", "one");
    int open_one = open("a", O_RDONLY);
    assert(rename("a", "b") == 0 && !has("a", "one") && has("b", "one"));
    assert(rename("a", "b") == -1 && errno == ENOENT && rename("b", "b") == 0);
    put("a", "two");
    assert(rename("a", "b") == 0 && has("b", "two"));
    char text[4] = "";
    assert(read(open_one, text, 3) == 3 && !strcmp(text, "one"));
    assert(remove("b") == 0 && access("b", F_OK) == -1 && remove("b") == -1 && errno == ENOENT);
    /* A file of the disk. */
    assert(rename("data.txt", "moved") == 0 && has("moved", "hello\n") && access("data.txt", F_OK) == -1);

    char first[] = "xXXXXXX", second[] = "xXXXXXX", wrong[] = "xXXXX";
    int one = mkstemp(first), two = mkstemp(second);
    assert(one >= 0 && two >= 0 && strcmp(first, second) && mkstemp(wrong) == -1 && errno == EINVAL);
    assert(write(one, "abc", 3) == 3 && has(first, "abc") && has(second, ""));
    FILE *unnamed = tmpfile();
    int number = 0;
    assert(unnamed && fprintf(unnamed, "%d", 42) == 2);
    rewind(unnamed);
    assert(fscanf(unnamed, "%d", &number) == 1 && number == 42);

    char bytes[8];
    assert(syscall(SYS_getrandom, bytes, sizeof bytes, 0) == sizeof bytes);

    put("config", "old");
    put("new", "new");
    pthread_t thread;
    pthread_create(&thread, 0, replace, 0);
    assert(access("config", F_OK) == 0);
    pthread_join(thread, 0);
    assert(has("config", "new"));
    return 0;
}
