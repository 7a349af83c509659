/* ---- variables of the environment --------------------------------------------------------------- */

/* Not guarded by anything: threads that change them and threads that read them race, as POSIX says. */

char **selvedge_variables(void);

API char **environ;

__attribute__((constructor(101))) static void find_variables(void) {
    /* A program may define `environ` itself. */
    if (!environ)
        environ = selvedge_variables();
}

/* Where the variable is that begins with so many characters of `name`. */
static char **variable_at(const char *name, size_t length) {
    for (char **variable = environ; variable && *variable; variable++)
        if (!strncmp(*variable, name, length) && (*variable)[length] == '=')
            return variable;
    return 0;
}

API char *getenv(const char *name) {
    size_t length = strlen(name);
    char **variable = variable_at(name, length);
    return variable ? *variable + length + 1 : 0;
}

API char *secure_getenv(const char *name) { return getenv(name); }

/* Makes `text`, whose first characters are the name, part of the environment. */
static int put_variable(char *text, size_t length) {
    char **variable = variable_at(text, length);
    if (variable) {
        *variable = text;
        return 0;
    }
    size_t count = 0;
    while (environ && environ[count])
        count++;
    char **all = malloc((count + 2) * sizeof *all);
    if (!all)
        return -1;
    for (size_t i = 0; i < count; i++)
        all[i] = environ[i];
    all[count] = text;
    all[count + 1] = 0;
    environ = all;
    return 0;
}

static int is_name(const char *name) {
    if (name && *name && !strchr(name, '='))
        return 1;
    errno = EINVAL;
    return 0;
}

API int setenv(const char *name, const char *value, int overwrite) {
    if (!is_name(name))
        return -1;
    size_t length = strlen(name), size = strlen(value) + 1;
    if (!overwrite && variable_at(name, length))
        return 0;
    char *text = malloc(length + 1 + size);
    if (!text)
        return -1;
    memcpy(text, name, length);
    text[length] = '=';
    memcpy(text + length + 1, value, size);
    return put_variable(text, length);
}

API int unsetenv(const char *name) {
    if (!is_name(name))
        return -1;
    size_t length = strlen(name);
    for (char **variable; (variable = variable_at(name, length));)
        do
            variable[0] = variable[1];
        while (*variable++);
    return 0;
}

API int putenv(char *text) {
    const char *end = strchr(text, '=');
    return end ? put_variable(text, end - text) : unsetenv(text);
}

API int clearenv(void) {
    environ = 0;
    return 0;
}
