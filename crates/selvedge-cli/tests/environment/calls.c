#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
static int handled;
static void handler(int n) { handled += n; }
int main(void) {
    int s[2]; char b[8];
    assert(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    assert(send(s[0], "abc", 3, 0) == 3 && recv(s[1], b, 8, MSG_PEEK) == 3 && recv(s[1], b, 8, 0) == 3);
    assert(recv(s[1], b, 8, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    close(s[0]); assert(recv(s[1], b, 8, 0) == 0);
    signal(SIGPIPE, SIG_IGN); assert(write(s[1], "x", 1) == -1 && errno == EPIPE);
    signal(SIGUSR1, handler); raise(SIGUSR1); assert(handled == SIGUSR1);
    sigset_t set, old; sigemptyset(&set); sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, &old); raise(SIGUSR1); assert(handled == SIGUSR1);
    sigprocmask(SIG_SETMASK, &old, 0); assert(handled == 2 * SIGUSR1);
    char *m = mmap(0, 10000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(m != MAP_FAILED && m[9999] == 0); m[9999] = 1; assert(!madvise(m, 10000, MADV_DONTNEED) && !m[9999]);
    assert(!mprotect(m, 4096, PROT_READ | PROT_WRITE) && !munmap(m, 10000));
    int f = open("data.txt", O_RDWR); struct stat st; assert(f >= 0 && !fstat(f, &st) && st.st_size == 12);
    m = mmap(0, 12, PROT_READ, MAP_PRIVATE, f, 0); assert(!memcmp(m, "hello", 5)); munmap(m, 12);
    assert(write(f, "J", 1) == 1 && lseek(f, 0, SEEK_SET) == 0 && read(f, b, 5) == 5 && !memcmp(b, "Jello", 5));
    assert(dup(f) == 5 && !close(f) && close(f) == -1 && errno == EBADF);
    assert(open("nope", O_RDONLY) == -1 && errno == ENOENT);
    return 0;
}
