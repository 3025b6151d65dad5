/* The C locale for the thread of a call: what is read and written does not depend on the caller's. */
#ifndef ONV_API_LOCALE_H
#define ONV_API_LOCALE_H

#include <locale.h>

typedef struct onv_locale {
    locale_t plain, before;
} onv_locale;

/* Without memory the caller's locale stays. */
static inline onv_locale onv_locale_enter(void)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return (onv_locale){plain, uselocale(plain)};
}

static inline void onv_locale_leave(onv_locale l)
{
    uselocale(l.before);
    if (l.plain != (locale_t)0) freelocale(l.plain);
}

#endif
