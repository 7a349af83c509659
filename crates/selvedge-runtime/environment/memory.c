/* ---- mapped memory ----------------------------------------------------------------------------- */

enum { MAPPINGS = 64, PAGE = 4096 };
struct mapping {
    char *start;
    size_t size;
};
static lock mappings_guard;
static struct mapping mappings[MAPPINGS];

/* Under the lock: the mapping that begins at `start`, or an unused one. */
static struct mapping *mapping_at(const void *start) {
    for (int i = 0; i < MAPPINGS; i++)
        if (mappings[i].start == start)
            return &mappings[i];
    return 0;
}

static size_t pages(size_t size) { return (size + PAGE - 1) & ~(size_t)(PAGE - 1); }

API void *mmap(void *wanted, size_t size, int protection, int flags, int descriptor, off_t offset) {
    if (!size || offset % PAGE) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE))
        REFUSE("mmap at a fixed address; let the system choose it");
    struct file *file = flags & MAP_ANONYMOUS ? 0 : file_of(descriptor);
    if (!(flags & MAP_ANONYMOUS) && !file)
        return MAP_FAILED;
    if (file && file->kind != REGULAR) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    if (file && flags & MAP_SHARED && protection & PROT_WRITE)
        REFUSE("mmap of a file that is written through memory; use write");
    if (!(protection & PROT_READ) || protection & PROT_EXEC)
        REFUSE("mmap of memory that cannot be read, or that can be executed; "
               "ask for reading and writing");
    if (!file && !(protection & PROT_WRITE))
        REFUSE("mmap of memory that cannot be written; ask for reading and writing");
    char *start = (char *)aligned_alloc(PAGE, pages(size));
    if (!start) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    if (file)
        read_file(file, start, size, offset);
    enter(&mappings_guard);
    struct mapping *mapping = mapping_at(0);
    if (!mapping)
        selvedge_give_up("more than 64 mappings at a time", 0);
    mapping->start = start;
    mapping->size = pages(size);
    leave(&mappings_guard, 0);
    return start;
}

API void *mmap64(void *wanted, size_t size, int protection, int flags, int descriptor, off_t offset) {
    return mmap(wanted, size, protection, flags, descriptor, offset);
}

API int munmap(void *start, size_t size) {
    enter(&mappings_guard);
    struct mapping *mapping = start ? mapping_at(start) : 0;
    if (!mapping || mapping->size != pages(size))
        REFUSE("munmap of something else than one whole mapping; "
               "give back what one call of mmap returned");
    mapping->start = 0;
    leave(&mappings_guard, 0);
    free(start);
    return 0;
}

API int mprotect(void *start, size_t size, int protection) {
    if (protection != (PROT_READ | PROT_WRITE))
        REFUSE("mprotect to anything else than reading and writing; leave the protection as it is");
    return 0;
}

API int madvise(void *start, size_t size, int advice) {
    if (advice == MADV_DONTNEED)
        memset(start, 0, pages(size));
    else if (advice == MADV_REMOVE || advice == MADV_HWPOISON || advice > MADV_HUGEPAGE + 20)
        REFUSE("madvise with an advice that changes memory");
    return 0;
}

API int posix_madvise(void *start, size_t size, int advice) { return 0; }

API int msync(void *start, size_t size, int flags) { return 0; }

API int mlock(const void *start, size_t size) { return 0; }

API int munlock(const void *start, size_t size) { return 0; }
