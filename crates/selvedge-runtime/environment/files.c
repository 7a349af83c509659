/* ---- files ------------------------------------------------------------------------------------ */

/* Files are read when they are first opened, and written in memory only. */
enum { INODES = 256 };
static int inodes_used;
static struct inode inodes[INODES];
/* What `--stdin` gives. */
static struct inode standard_input = {.path = (char *)""};

/* Where programs ask whether a debugger runs them: none does. */
static const char STATUS[] = "/proc/self/status", NO_TRACER[] = "Name:\tprogram\nTracerPid:\t0\n";

static int is_special(const char *path) {
    if (!strcmp(path, "/dev/null") || !strcmp(path, STATUS))
        return 0;
    return !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6) || !strncmp(path, "/sys/", 5);
}

/* What a file is called that has no name any more: nothing that is looked up. */
static char NAMELESS[] = "./";

static const char *plain(const char *path) {
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    return path;
}

/* Under the table's lock. */
static struct inode *named(const char *path) {
    for (int i = 0; i < inodes_used; i++)
        if (!strcmp(inodes[i].name, path))
            return &inodes[i];
    return 0;
}

/* Under the table's lock. */
static struct inode *new_inode(char *name) {
    if (inodes_used == INODES)
        selvedge_give_up("more than 256 files in one execution", 0);
    struct inode *inode = &inodes[inodes_used++];
    inode->path = inode->name = name;
    return inode;
}

static struct inode *inode_of(const char *path) {
    path = plain(path);
    if (is_special(path))
        selvedge_give_up("a file of /dev, /proc or /sys; replace what is read there by a constant", SITE);
    enter(&table);
    struct inode *inode = named(path);
    if (!inode)
        inode = new_inode(strdup(path));
    leave(&table, 0);
    return inode;
}

/* Takes the lock of the file that is called so. */
static struct inode *enter_file(const char *path) {
    for (;;) {
        struct inode *inode = inode_of(path);
        enter(&inode->guard);
        enter(&table);
        int is_it = !strcmp(inode->name, plain(path));
        leave(&table, 0);
        if (is_it)
            return inode;
        leave(&inode->guard, 0);
    }
}

/* Gives a file, if it is called `from`, another name. Threads that have it open go on using it. */
static int call(struct inode *inode, const char *from, const char *to) {
    enter(&table);
    int done = !strcmp(inode->name, plain(from));
    if (done) {
        struct inode *none = new_inode(inode->name), *other = to ? named(plain(to)) : 0;
        none->loaded = 1;
        inode->name = other ? other->name : to ? strdup(plain(to)) : NAMELESS;
        if (other)
            other->name = NAMELESS;
    }
    leave(&table, 0);
    return done;
}

/* Under the file's lock: fetches the contents that the search found. 0, or an error number. */
static int load(struct inode *inode) {
    if (inode->loaded)
        return inode->exists ? 0 : ENOENT;
    if (!strcmp(inode->path, "/dev/null")) {
        inode->loaded = inode->exists = 1;
        return 0;
    }
    if (!strcmp(inode->path, STATUS)) {
        inode->data = strdup(NO_TRACER);
        inode->size = inode->room = sizeof NO_TRACER - 1;
        inode->loaded = inode->exists = 1;
        return 0;
    }
    int64_t size = selvedge_file_size(inode->path);
    if (size < 0)
        return (int)-size;
    inode->data = (char *)malloc((size_t)size + 1);
    selvedge_file_read(inode->path, inode->data, (size_t)size);
    inode->size = inode->room = (size_t)size;
    inode->loaded = inode->exists = 1;
    return 0;
}

static int open_file(const char *path, int flags) {
    struct inode *inode = enter_file(path);
    int number = load(inode);
    if (number == ENOENT && flags & O_CREAT) {
        number = 0;
        inode->loaded = inode->exists = 1;
        inode->size = 0;
    } else if (number == 0 && (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        number = EEXIST;
    if (number == 0 && flags & O_TRUNC)
        inode->size = 0;
    leave(&inode->guard, 0);
    if (number)
        return fail(number);
    struct file *file = new_file(REGULAR, flags & (O_ACCMODE | O_APPEND | O_NONBLOCK));
    file->inode = inode;
    return install(file, 0, flags & O_CLOEXEC);
}

API int open(const char *path, int flags, ...) { return open_file(path, flags); }

API int open64(const char *path, int flags, ...) { return open_file(path, flags); }

API int __open_2(const char *path, int flags) { return open_file(path, flags); }

API int __open64_2(const char *path, int flags) { return open_file(path, flags); }

API int creat(const char *path, mode_t mode) { return open_file(path, O_CREAT | O_WRONLY | O_TRUNC); }

API int openat(int directory, const char *path, int flags, ...) {
    if (directory != AT_FDCWD && path[0] != '/')
        REFUSE("openat relative to a directory; give a path from the current directory");
    return open_file(path, flags);
}

/* Takes the lock of an open file's contents, which are there. */
static struct inode *contents(struct file *file) {
    struct inode *inode = file->kind == INPUT ? &standard_input : file->inode;
    enter(&inode->guard);
    int number = load(inode);
    if (file->kind == INPUT && number)
        selvedge_give_up(number == ENOENT ? "standard input; give it with --stdin FILE"
                                          : "standard input, which cannot be read",
                         0);
    return inode;
}

/* At the file's own place if `at` is -1. */
static ssize_t read_file(struct file *file, void *into, size_t size, off_t at) {
    struct inode *inode = contents(file);
    size_t from = at < 0 ? file->offset : (size_t)at;
    size_t left = from < inode->size ? inode->size - from : 0, count = size < left ? size : left;
    if (count)
        memcpy(into, inode->data + from, count);
    if (at < 0)
        file->offset = from + count;
    leave(&inode->guard, 0);
    return (ssize_t)count;
}

/* Under the lock. */
static void resize(struct inode *inode, size_t size) {
    if (size > inode->room) {
        size_t room = inode->room ? inode->room : 64;
        while (room < size)
            room *= 2;
        inode->data = (char *)realloc(inode->data, room);
        inode->room = room;
    }
    if (size > inode->size)
        memset(inode->data + inode->size, 0, size - inode->size);
    inode->size = size;
}

static ssize_t write_file(struct file *file, const void *from, size_t size, off_t at) {
    struct inode *inode = contents(file);
    int appends = __atomic_load_n(&file->flags, __ATOMIC_RELAXED) & O_APPEND;
    size_t to = at >= 0 ? (size_t)at : appends ? inode->size : file->offset;
    if (strcmp(inode->path, "/dev/null") && size) {
        if (to + size > inode->size)
            resize(inode, to + size);
        memcpy(inode->data + to, from, size);
    }
    if (at < 0)
        file->offset = to + size;
    leave(&inode->guard, 0);
    return (ssize_t)size;
}

static int is_file(struct file *file) { return file->kind == REGULAR || file->kind == INPUT; }

API off_t lseek(int descriptor, off_t offset, int from) {
    struct file *file = file_of(descriptor);
    if (!file)
        return -1;
    if (!is_file(file))
        return fail(ESPIPE);
    struct inode *inode = contents(file);
    off_t base = from == SEEK_SET ? 0 : from == SEEK_CUR ? (off_t)file->offset : (off_t)inode->size;
    off_t to = base + offset;
    if (to >= 0)
        file->offset = (size_t)to;
    leave(&inode->guard, 0);
    return to >= 0 ? to : fail(EINVAL);
}

API off_t lseek64(int descriptor, off_t offset, int from) { return lseek(descriptor, offset, from); }

API int ftruncate(int descriptor, off_t size) {
    struct file *file = file_of(descriptor);
    if (!file)
        return -1;
    if (file->kind != REGULAR)
        return fail(EINVAL);
    struct inode *inode = contents(file);
    resize(inode, (size_t)size);
    leave(&inode->guard, 0);
    return 0;
}

API int ftruncate64(int descriptor, off_t size) { return ftruncate(descriptor, size); }

API int fsync(int descriptor) { return file_of(descriptor) ? 0 : -1; }

API int fdatasync(int descriptor) { return file_of(descriptor) ? 0 : -1; }

/* Gives a file another name, or none. */
static int move(const char *from, const char *to, uintptr_t site) {
    for (;;) {
        struct inode *inode = inode_of(from);
        enter(&inode->guard);
        int number = load(inode);
        leave(&inode->guard, 0);
        if (!strncmp(inode->path, "/dev/", 5) || !strncmp(inode->path, "/proc/", 6))
            selvedge_give_up("another name for a file of /dev or /proc", site);
        if (number)
            return fail(number);
        if (to && !strcmp(plain(from), plain(to)))
            return 0;
        if (call(inode, from, to))
            return 0;
    }
}

static int is_directory(const char *path) {
    struct inode *inode = inode_of(path);
    enter(&inode->guard);
    int number = load(inode);
    leave(&inode->guard, 0);
    return number == EISDIR;
}

API int unlink(const char *path) { return move(path, 0, SITE); }

API int remove(const char *path) {
    if (is_directory(path))
        REFUSE("remove of a directory; keep to files");
    return move(path, 0, SITE);
}

API int rename(const char *from, const char *to) {
    if (is_directory(from) || is_directory(to))
        REFUSE("rename of a directory; keep to files");
    return move(from, to, SITE);
}

/* The letters are those of a number, so that they are the same in every run. */
API int mkstemp(char *path) {
    static unsigned used;
    size_t length = strlen(path);
    if (length < 6 || strcmp(path + length - 6, "XXXXXX"))
        return fail(EINVAL);
    for (;;) {
        unsigned number = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
        for (size_t i = length - 6; i < length; i++, number /= 26)
            path[i] = (char)('a' + number % 26);
        int descriptor = open_file(path, O_RDWR | O_CREAT | O_EXCL);
        if (descriptor >= 0 || errno != EEXIST)
            return descriptor;
    }
}

API int mkstemp64(char *path) { return mkstemp(path); }

API int access(const char *path, int mode) {
    struct inode *inode = inode_of(path);
    enter(&inode->guard);
    int number = load(inode);
    leave(&inode->guard, 0);
    return number && number != EISDIR ? fail(number) : 0;
}

static int describe(struct inode *inode, struct stat *result) {
    enter(&inode->guard);
    int number = load(inode);
    size_t size = inode->size;
    leave(&inode->guard, 0);
    if (number && number != EISDIR)
        return fail(number);
    memset(result, 0, sizeof *result);
    result->st_mode = number ? S_IFDIR | 0755 : S_IFREG | 0644;
    result->st_size = number ? 4096 : (off_t)size;
    result->st_nlink = 1;
    result->st_blksize = 4096;
    result->st_blocks = (result->st_size + 511) / 512;
    result->st_uid = result->st_gid = 1000;
    result->st_ino = inode == &standard_input ? 1 : (ino_t)(2 + (inode - inodes));
    return 0;
}

API int stat(const char *path, struct stat *result) { return describe(inode_of(path), result); }

API int lstat(const char *path, struct stat *result) { return describe(inode_of(path), result); }

API int fstat(int descriptor, struct stat *result) {
    struct file *file = file_of(descriptor);
    if (!file)
        return -1;
    if (file->kind == REGULAR)
        return describe(file->inode, result);
    memset(result, 0, sizeof *result);
    result->st_mode = (file->kind == STREAM ? S_IFIFO : S_IFCHR) | 0600;
    result->st_blksize = 4096;
    return 0;
}

API int stat64(const char *path, struct stat64 *result) { return stat(path, (struct stat *)result); }

API int lstat64(const char *path, struct stat64 *result) { return stat(path, (struct stat *)result); }

API int fstat64(int descriptor, struct stat64 *result) {
    return fstat(descriptor, (struct stat *)result);
}

API char *getcwd(char *into, size_t size) {
    char *path = into ? into : (char *)malloc(size ? size : PATH_MAX);
    if (selvedge_directory(path, into || size ? size : PATH_MAX))
        return path;
    if (!into)
        free(path);
    errno = ERANGE;
    return 0;
}

/* ---- reading and writing ---------------------------------------------------------------------- */

static int may(struct file *file, int forbidden) {
    return (__atomic_load_n(&file->flags, __ATOMIC_RELAXED) & O_ACCMODE) != forbidden;
}

static ssize_t read_at(int descriptor, void *into, size_t size, off_t at) {
    struct file *file = file_of(descriptor);
    if (!file)
        return -1;
    if (!may(file, O_WRONLY))
        return fail(EBADF);
    if (at >= 0 && !is_file(file))
        return fail(ESPIPE);
    switch (file->kind) {
    case STREAM:
        return read_channel(file->in, (char *)into, size, waits(file), 0);
    case COUNTER:
        return read_counter(file, into, size);
    case TIMER:
        return read_timer(file, into, size);
    case INPUT:
    case REGULAR:
        return read_file(file, into, size, at);
    default:
        return fail(EINVAL);
    }
}

static ssize_t write_at(int descriptor, const void *from, size_t size, off_t at) {
    struct file *file = file_of(descriptor);
    if (!file)
        return -1;
    if (!may(file, O_RDONLY))
        return fail(EBADF);
    if (at >= 0 && file->kind != REGULAR)
        return fail(ESPIPE);
    switch (file->kind) {
    case OUTPUT:
        selvedge_output(file == &files[2] ? 2 : 1, from, size);
        return (ssize_t)size;
    case STREAM:
        return write_channel(file->out, (const char *)from, size, waits(file), 0);
    case COUNTER:
        return write_counter(file, from, size);
    case REGULAR:
        return write_file(file, from, size, at);
    default:
        return fail(EINVAL);
    }
}

API ssize_t read(int descriptor, void *into, size_t size) {
    return read_at(descriptor, into, size, -1);
}

API ssize_t __read_chk(int descriptor, void *into, size_t size, size_t room) {
    if (size > room)
        abort();
    return read_at(descriptor, into, size, -1);
}

API ssize_t write(int descriptor, const void *from, size_t size) {
    return write_at(descriptor, from, size, -1);
}

API ssize_t pread(int descriptor, void *into, size_t size, off_t at) {
    return at < 0 ? fail(EINVAL) : read_at(descriptor, into, size, at);
}

API ssize_t pread64(int descriptor, void *into, size_t size, off_t at) {
    return pread(descriptor, into, size, at);
}

API ssize_t pwrite(int descriptor, const void *from, size_t size, off_t at) {
    return at < 0 ? fail(EINVAL) : write_at(descriptor, from, size, at);
}

API ssize_t pwrite64(int descriptor, const void *from, size_t size, off_t at) {
    return pwrite(descriptor, from, size, at);
}

static size_t total(const struct iovec *pieces, int count) {
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += pieces[i].iov_len;
    return size;
}

API ssize_t readv(int descriptor, const struct iovec *pieces, int count) {
    size_t size = total(pieces, count), done = 0;
    char *all = (char *)malloc(size + 1);
    ssize_t result = read(descriptor, all, size);
    for (int i = 0; i < count && result > 0 && done < (size_t)result; i++) {
        size_t left = (size_t)result - done;
        size_t part = pieces[i].iov_len < left ? pieces[i].iov_len : left;
        memcpy(pieces[i].iov_base, all + done, part);
        done += part;
    }
    free(all);
    return result;
}

API ssize_t writev(int descriptor, const struct iovec *pieces, int count) {
    size_t size = total(pieces, count), done = 0;
    char *all = (char *)malloc(size + 1);
    for (int i = 0; i < count; i++) {
        memcpy(all + done, pieces[i].iov_base, pieces[i].iov_len);
        done += pieces[i].iov_len;
    }
    ssize_t result = write(descriptor, all, size);
    free(all);
    return result;
}

static struct file *socket_of(int descriptor) {
    struct file *file = file_of(descriptor);
    if (file && (file->kind != STREAM || !file->in || !file->out)) {
        errno = ENOTSOCK;
        return 0;
    }
    return file;
}

API ssize_t send(int descriptor, const void *from, size_t size, int flags) {
    struct file *file = socket_of(descriptor);
    if (!file)
        return -1;
    int wait = !(flags & MSG_DONTWAIT) && waits(file);
    return write_channel(file->out, (const char *)from, size, wait, flags & MSG_NOSIGNAL);
}

API ssize_t recv(int descriptor, void *into, size_t size, int flags) {
    struct file *file = socket_of(descriptor);
    if (!file)
        return -1;
    if (flags & ~(MSG_DONTWAIT | MSG_PEEK | MSG_NOSIGNAL))
        REFUSE("recv with other flags than MSG_DONTWAIT and MSG_PEEK");
    int wait = !(flags & MSG_DONTWAIT) && waits(file);
    return read_channel(file->in, (char *)into, size, wait, flags & MSG_PEEK);
}

API int isatty(int descriptor) {
    if (file_of(descriptor))
        errno = ENOTTY;
    return 0;
}

API int ioctl(int descriptor, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    int *argument = va_arg(arguments, int *);
    va_end(arguments);
    struct file *file = file_of(descriptor);
    if (!file)
        return -1;
    if (request == FIONBIO)
        return control(descriptor, F_SETFL, *argument ? O_NONBLOCK : 0);
    if (request != FIONREAD)
        REFUSE("ioctl with another request than FIONREAD and FIONBIO");
    if (file->kind == STREAM && file->in) {
        enter(&file->in->guard);
        *argument = (int)file->in->count;
        leave_channel(file->in);
        return 0;
    }
    if (!is_file(file))
        return fail(ENOTTY);
    struct inode *inode = contents(file);
    *argument = inode->size > file->offset ? (int)(inode->size - file->offset) : 0;
    leave(&inode->guard, 0);
    return 0;
}
