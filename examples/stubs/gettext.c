/* Messages as they are written in the program: selvedge verify … --stub examples/stubs/gettext.c */
#include <libintl.h>
#undef gettext
#undef dgettext
#undef dcgettext
#undef ngettext
#undef dngettext
#undef dcngettext

char *gettext(const char *message) { return (char *)message; }
char *dgettext(const char *domain, const char *message) { return (char *)message; }
char *dcgettext(const char *domain, const char *message, int category) { return (char *)message; }

char *ngettext(const char *one, const char *many, unsigned long count) {
    return (char *)(count == 1 ? one : many);
}
char *dngettext(const char *domain, const char *one, const char *many, unsigned long count) {
    return ngettext(one, many, count);
}
char *dcngettext(const char *domain, const char *one, const char *many, unsigned long count, int category) {
    return ngettext(one, many, count);
}

char *textdomain(const char *domain) { return (char *)"messages"; }
char *bindtextdomain(const char *domain, const char *directory) { return (char *)"/"; }
char *bind_textdomain_codeset(const char *domain, const char *codeset) { return (char *)"UTF-8"; }
