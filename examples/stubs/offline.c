/* A machine without a network: selvedge verify … --stub examples/stubs/offline.c */
#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>
#include <syslog.h>

int socket(int domain, int type, int protocol) {
    errno = EAFNOSUPPORT;
    return -1;
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
    return EAI_FAIL;
}

void openlog(const char *name, int options, int facility) {}
void syslog(int priority, const char *format, ...) {}
void closelog(void) {}
