/* ---- streams ---------------------------------------------------------------------------------- */

/* What a FILE points to; the first bytes have the shape of the C library's, with nothing buffered. */
struct stream {
    char shape[216];
    lock guard;
    int descriptor, ended, failed, pushed;
    size_t at, end;
    char buffer[512];
};

enum { NO_BYTE = -2 };
static struct stream standard[3] = {
    {.pushed = NO_BYTE}, {.descriptor = 1, .pushed = NO_BYTE}, {.descriptor = 2, .pushed = NO_BYTE}};

static struct stream *stream_of(FILE *file) {
    return file == stdin    ? &standard[0]
           : file == stdout ? &standard[1]
           : file == stderr ? &standard[2]
                            : (struct stream *)file;
}

static FILE *new_stream(int descriptor) {
    struct stream *stream = (struct stream *)calloc(1, sizeof *stream);
    stream->descriptor = descriptor;
    stream->pushed = NO_BYTE;
    return (FILE *)stream;
}

static int mode_of(const char *mode) {
    int flags = mode[0] == 'r' ? O_RDONLY : O_WRONLY | O_CREAT;
    if (mode[0] == 'w')
        flags |= O_TRUNC;
    else if (mode[0] == 'a')
        flags |= O_APPEND;
    else if (mode[0] != 'r')
        return -1;
    for (const char *more = mode + 1; *more && *more != ','; more++) {
        if (*more == '+')
            flags = (flags & ~O_ACCMODE) | O_RDWR;
        if (*more == 'x')
            flags |= O_EXCL;
    }
    return flags;
}

API FILE *fopen(const char *path, const char *mode) {
    int flags = mode_of(mode);
    if (flags < 0) {
        errno = EINVAL;
        return 0;
    }
    int descriptor = open_file(path, flags);
    return descriptor < 0 ? 0 : new_stream(descriptor);
}

API FILE *fopen64(const char *path, const char *mode) { return fopen(path, mode); }

API FILE *fdopen(int descriptor, const char *mode) {
    if (mode_of(mode) < 0) {
        errno = EINVAL;
        return 0;
    }
    return file_of(descriptor) ? new_stream(descriptor) : 0;
}

API FILE *tmpfile(void) {
    char path[] = "/tmp/XXXXXX";
    int descriptor = mkstemp(path);
    if (descriptor < 0)
        return 0;
    unlink(path);
    return new_stream(descriptor);
}

API FILE *tmpfile64(void) { return tmpfile(); }

API int fclose(FILE *file) {
    struct stream *stream = stream_of(file);
    int result = close(stream->descriptor);
    if (stream == (struct stream *)file)
        free(stream);
    return result ? EOF : 0;
}

API int fileno(FILE *file) { return stream_of(file)->descriptor; }

API int fileno_unlocked(FILE *file) { return stream_of(file)->descriptor; }

/* The next byte, under the stream's lock; EOF at the end. */
static int next_byte(struct stream *stream) {
    if (stream->pushed != NO_BYTE) {
        int byte = stream->pushed;
        stream->pushed = NO_BYTE;
        return byte;
    }
    if (stream->at == stream->end) {
        ssize_t count = read_at(stream->descriptor, stream->buffer, sizeof stream->buffer, -1);
        stream->ended |= count == 0;
        stream->failed |= count < 0;
        if (count <= 0)
            return EOF;
        stream->at = 0;
        stream->end = (size_t)count;
    }
    return (unsigned char)stream->buffer[stream->at++];
}

static void push_back(struct stream *stream, int byte) {
    if (byte != EOF) {
        stream->pushed = (unsigned char)byte;
        stream->ended = 0;
    }
}

API int fgetc(FILE *file) {
    struct stream *stream = stream_of(file);
    enter(&stream->guard);
    int byte = next_byte(stream);
    leave(&stream->guard, 0);
    return byte;
}

API int getc(FILE *file) { return fgetc(file); }

API int getc_unlocked(FILE *file) { return fgetc(file); }

API int fgetc_unlocked(FILE *file) { return fgetc(file); }

API int _IO_getc(FILE *file) { return fgetc(file); }

API int getchar(void) { return fgetc(stdin); }

API int getchar_unlocked(void) { return fgetc(stdin); }

API int ungetc(int byte, FILE *file) {
    struct stream *stream = stream_of(file);
    enter(&stream->guard);
    if (stream->pushed != NO_BYTE)
        byte = EOF;
    push_back(stream, byte);
    leave(&stream->guard, 0);
    return byte;
}

API char *fgets(char *into, int size, FILE *file) {
    struct stream *stream = stream_of(file);
    int count = 0, byte = 0;
    enter(&stream->guard);
    while (count < size - 1 && byte != '\n') {
        byte = next_byte(stream);
        if (byte == EOF)
            break;
        into[count++] = (char)byte;
    }
    leave(&stream->guard, 0);
    if (size > 0)
        into[count] = 0;
    return count || size == 1 ? into : 0;
}

API size_t fread(void *into, size_t size, size_t count, FILE *file) {
    struct stream *stream = stream_of(file);
    size_t all = size * count, done = 0;
    enter(&stream->guard);
    while (done < all) {
        int byte = next_byte(stream);
        if (byte == EOF)
            break;
        ((char *)into)[done++] = (char)byte;
    }
    leave(&stream->guard, 0);
    return size ? done / size : 0;
}

API size_t fread_unlocked(void *into, size_t size, size_t count, FILE *file) {
    return fread(into, size, count, file);
}

API ssize_t getdelim(char **line, size_t *room, int delimiter, FILE *file) {
    struct stream *stream = stream_of(file);
    size_t count = 0;
    int byte = 0;
    enter(&stream->guard);
    do {
        if (!*line || count + 2 > *room) {
            *room = *line && *room ? 2 * *room : 120;
            *line = (char *)realloc(*line, *room);
        }
        byte = next_byte(stream);
        if (byte != EOF)
            (*line)[count++] = (char)byte;
    } while (byte != EOF && byte != delimiter);
    leave(&stream->guard, 0);
    (*line)[count] = 0;
    return count ? (ssize_t)count : -1;
}

API ssize_t __getdelim(char **line, size_t *room, int delimiter, FILE *file) {
    return getdelim(line, room, delimiter, file);
}

API ssize_t getline(char **line, size_t *room, FILE *file) { return getdelim(line, room, '\n', file); }

API int feof(FILE *file) {
    struct stream *stream = stream_of(file);
    enter(&stream->guard);
    int ended = stream->ended;
    leave(&stream->guard, 0);
    return ended;
}

API int ferror(FILE *file) {
    struct stream *stream = stream_of(file);
    enter(&stream->guard);
    int failed = stream->failed;
    leave(&stream->guard, 0);
    return failed;
}

API void clearerr(FILE *file) {
    struct stream *stream = stream_of(file);
    enter(&stream->guard);
    stream->ended = stream->failed = 0;
    leave(&stream->guard, 0);
}

API int fseeko(FILE *file, off_t offset, int from) {
    struct stream *stream = stream_of(file);
    enter(&stream->guard);
    off_t ahead = (off_t)(stream->end - stream->at) + (stream->pushed != NO_BYTE);
    off_t to = lseek(stream->descriptor, from == SEEK_CUR ? offset - ahead : offset, from);
    if (to >= 0) {
        stream->at = stream->end = 0;
        stream->ended = 0;
        stream->pushed = NO_BYTE;
    }
    leave(&stream->guard, 0);
    return to < 0 ? -1 : 0;
}

API int fseek(FILE *file, long offset, int from) { return fseeko(file, offset, from); }

API int fseeko64(FILE *file, off_t offset, int from) { return fseeko(file, offset, from); }

API off_t ftello(FILE *file) {
    struct stream *stream = stream_of(file);
    enter(&stream->guard);
    off_t ahead = (off_t)(stream->end - stream->at) + (stream->pushed != NO_BYTE);
    off_t at = lseek(stream->descriptor, 0, SEEK_CUR);
    leave(&stream->guard, 0);
    return at < 0 ? at : at - ahead;
}

API long ftell(FILE *file) { return ftello(file); }

API off_t ftello64(FILE *file) { return ftello(file); }

API void rewind(FILE *file) {
    fseeko(file, 0, SEEK_SET);
    clearerr(file);
}

/* ---- output to streams: nothing is kept back --------------------------------------------------- */

static int put(FILE *file, const void *bytes, size_t size) {
    ssize_t count = write_at(stream_of(file)->descriptor, bytes, size, -1);
    return count == (ssize_t)size ? 0 : -1;
}

API size_t fwrite(const void *bytes, size_t size, size_t count, FILE *file) {
    return size && !put(file, bytes, size * count) ? count : 0;
}

API size_t fwrite_unlocked(const void *bytes, size_t size, size_t count, FILE *file) {
    return fwrite(bytes, size, count, file);
}

API int fputs(const char *string, FILE *file) { return put(file, string, strlen(string)) ? EOF : 1; }

API int fputs_unlocked(const char *string, FILE *file) { return fputs(string, file); }

API int fputc(int byte, FILE *file) {
    unsigned char character = (unsigned char)byte;
    return put(file, &character, 1) ? EOF : character;
}

API int fputc_unlocked(int byte, FILE *file) { return fputc(byte, file); }

API int putc(int byte, FILE *file) { return fputc(byte, file); }

API int putc_unlocked(int byte, FILE *file) { return fputc(byte, file); }

API int _IO_putc(int byte, FILE *file) { return fputc(byte, file); }

static int print(int descriptor, const char *format, va_list arguments) {
    char *text;
    int count = vasprintf(&text, format, arguments);
    if (count < 0)
        return count;
    ssize_t written = write_at(descriptor, text, (size_t)count, -1);
    free(text);
    return written < 0 ? -1 : count;
}

API int vfprintf(FILE *file, const char *format, va_list arguments) {
    return print(stream_of(file)->descriptor, format, arguments);
}

API int __vfprintf_chk(FILE *file, int flag, const char *format, va_list arguments) {
    return print(stream_of(file)->descriptor, format, arguments);
}

API int vdprintf(int descriptor, const char *format, va_list arguments) {
    return print(descriptor, format, arguments);
}

#define PRINT(descriptor)                                                                          \
    va_list arguments;                                                                             \
    va_start(arguments, format);                                                                   \
    int count = print(descriptor, format, arguments);                                              \
    va_end(arguments);                                                                             \
    return count

API int fprintf(FILE *file, const char *format, ...) { PRINT(stream_of(file)->descriptor); }

API int __fprintf_chk(FILE *file, int flag, const char *format, ...) {
    PRINT(stream_of(file)->descriptor);
}

API int dprintf(int descriptor, const char *format, ...) { PRINT(descriptor); }

API int __dprintf_chk(int descriptor, int flag, const char *format, ...) { PRINT(descriptor); }

/* ---- scanf ------------------------------------------------------------------------------------- */

static int is_space(int byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

/* A byte after the stream's whitespace; it is counted when it is taken. */
static int skip_spaces(struct stream *stream, int *taken) {
    int byte = next_byte(stream);
    for (; is_space(byte); ++*taken)
        byte = next_byte(stream);
    return byte;
}

/* Whether a number in text may go on with this byte. */
static int is_number_byte(int byte, int real) {
    return byte != EOF && strchr(real ? "0123456789abcdefABCDEFxXinftyINFTYpP.+-"
                                      : "0123456789abcdefABCDEFxX+-", byte);
}

/* Takes apart what one conversion needs; its own text goes to `directive`. Returns the conversion. */
static char read_directive(const char **format, char *directive, int *width, int *discards) {
    const char *from = *format;
    *discards = *from == '*';
    from += *discards;
    *width = 0;
    while (*from >= '0' && *from <= '9')
        *width = 10 * *width + (*from++ - '0');
    size_t count = 0;
    directive[count++] = '%';
    while (strchr("hlLqjzt", *from) && *from)
        directive[count++] = *from++;
    char conversion = *from ? *from++ : 0;
    directive[count++] = conversion;
    directive[count] = 0;
    *format = from;
    return conversion;
}

static int scan(FILE *file, const char *format, va_list arguments) {
    enum { LONGEST = 256 };
    struct stream *stream = stream_of(file);
    char token[LONGEST + 1], directive[8];
    int taken = 0, assigned = 0, byte = 0;
    enter(&stream->guard);
    while (*format) {
        if (is_space(*format)) {
            push_back(stream, skip_spaces(stream, &taken));
            format++;
            continue;
        }
        if (*format != '%' || format[1] == '%') {
            byte = *format == '%' ? skip_spaces(stream, &taken) : next_byte(stream);
            format += *format == '%';
            if (byte != *format++) {
                push_back(stream, byte);
                break;
            }
            taken++;
            continue;
        }
        int width, discards, count = 0;
        format++;
        char conversion = read_directive(&format, directive, &width, &discards);
        if (conversion == 'n') {
            *va_arg(arguments, int *) = taken;
            continue;
        }
        int real = strchr("aefgAEFG", conversion) != 0, text = conversion == 's' || conversion == 'c';
        if (!strchr("dioxXup", conversion) && !real && !text)
            selvedge_give_up("scanf of a file with this conversion; use fgets and sscanf", 0);
        byte = conversion == 'c' ? next_byte(stream) : skip_spaces(stream, &taken);
        if (byte == EOF) {
            assigned = assigned ? assigned : EOF;
            break;
        }
        char *to = text && !discards ? va_arg(arguments, char *) : 0;
        int most = width ? width : conversion == 'c' ? 1 : text ? INT_MAX : LONGEST;
        if (!text && most > LONGEST)
            most = LONGEST;
        while (byte != EOF && (conversion == 'c' || (text ? !is_space(byte) : is_number_byte(byte, real)))) {
            if (to)
                to[count] = (char)byte;
            else if (!text)
                token[count] = (char)byte;
            if (++count == most)
                break;
            byte = next_byte(stream);
        }
        if (count != most)
            push_back(stream, byte);
        taken += count;
        if (conversion == 's' && to)
            to[count] = 0;
        if (!text) {
            token[count] = 0;
            int used = 0;
            void *target = discards ? (void *)token : va_arg(arguments, void *);
            char whole[12];
            snprintf(whole, sizeof whole, "%s%%n", directive);
            if (discards)
                selvedge_give_up("scanf of a file with a number that is left out (%*d)", 0);
            if (sscanf(token, whole, target, &used) < 1)
                break;
            if (used != count)
                selvedge_give_up("scanf of a file where a number ends in letters or signs", 0);
        }
        assigned += !discards;
    }
    leave(&stream->guard, 0);
    return assigned;
}

#define SCAN(file)                                                                                 \
    va_list arguments;                                                                             \
    va_start(arguments, format);                                                                   \
    int count = scan(file, format, arguments);                                                     \
    va_end(arguments);                                                                             \
    return count

API int __isoc99_vfscanf(FILE *file, const char *format, va_list arguments) {
    return scan(file, format, arguments);
}

API int __isoc99_scanf(const char *format, ...) { SCAN(stdin); }

API int __isoc23_scanf(const char *format, ...) { SCAN(stdin); }

API int __isoc99_fscanf(FILE *file, const char *format, ...) { SCAN(file); }

API int __isoc23_fscanf(FILE *file, const char *format, ...) { SCAN(file); }
