#include <assert.h>
#include <pthread.h>
#include <unistd.h>
int ends[2];
void *writer(void *a) { char c = 'x'; assert(write(ends[1], &c, 1) == 1); close(ends[1]); return 0; }
int main(void) {
    pthread_t t; char b[4];
    pipe(ends);
    pthread_create(&t, 0, writer, 0);
    assert(read(ends[0], b, 4) == 1 && b[0] == 'x');
    assert(read(ends[0], b, 4) == 0);
    pthread_join(t, 0);
    return close(ends[0]);
}
