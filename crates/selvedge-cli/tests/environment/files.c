#include <assert.h>
#include <stdio.h>
#include <string.h>
int main(void) {
    char line[100]; int a, b;
    FILE *f = fopen("data.txt", "r"); assert(f);
    assert(fgets(line, 100, f) && !strcmp(line, "hello\n"));
    assert(fscanf(f, "%d %d", &a, &b) == 2 && a == 12 && b == -7);
    fclose(f);
    f = fopen("out.txt", "w"); fprintf(f, "%d\n", 42); fclose(f);
    f = fopen("out.txt", "r"); assert(fscanf(f, "%d", &a) == 1 && a == 42); fclose(f);
    assert(scanf("%d", &a) == 1 && a == 99);
    assert(!fopen("missing", "r"));
    return 0;
}
