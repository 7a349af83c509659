#include <assert.h>
#include <pthread.h>
#include <unistd.h>
int ends[2];
void *writer(void *a) { assert(write(ends[1], a, 1) == 1); return 0; }
int main(void) {
    pthread_t t, u; char b[2];
    pipe(ends);
    pthread_create(&t, 0, writer, "a");
    pthread_create(&u, 0, writer, "b");
    int n = read(ends[0], b, 2);
    if (n == 1) assert(read(ends[0], b + 1, 1) == 1);
    assert((b[0] == 'a' && b[1] == 'b') || (b[0] == 'b' && b[1] == 'a'));
    pthread_join(t, 0); pthread_join(u, 0);
}
