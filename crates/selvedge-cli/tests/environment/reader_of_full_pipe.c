/* A write that fits only when something was read. */
#include <assert.h>
#include <pthread.h>
#include <unistd.h>
static int ends[2];
static char block[65536];
static void *reader(void *unused) { static char c[4096]; assert(read(ends[0], c, 4096) == 4096); return unused; }
int main(void) {
    pthread_t thread;
    pipe(ends);
    assert(write(ends[1], block, 65535) == 65535);
    pthread_create(&thread, 0, reader, 0);
    assert(write(ends[1], "ab", 2) == 2);
    pthread_join(thread, 0);
    return 0;
}
