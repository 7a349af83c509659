/* A machine that is always the same: selvedge verify … --stub examples/stubs/machine.c */
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

int uname(struct utsname *name) {
    memset(name, 0, sizeof *name);
    strcpy(name->sysname, "Linux");
    strcpy(name->nodename, "localhost");
    strcpy(name->release, "6.1.0");
    strcpy(name->version, "#1");
    strcpy(name->machine, "x86_64");
    return 0;
}

int gethostname(char *name, size_t size) {
    strncpy(name, "localhost", size);
    return 0;
}

int sysinfo(struct sysinfo *info) {
    memset(info, 0, sizeof *info);
    info->uptime = 1000;
    info->totalram = 1UL << 30;
    info->freeram = 1UL << 29;
    info->mem_unit = 1;
    return 0;
}
