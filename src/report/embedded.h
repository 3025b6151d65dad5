/* Files of the source tree that the program hands out; cmake/embed.cmake makes them C. */
#ifndef ONV_REPORT_EMBEDDED_H
#define ONV_REPORT_EMBEDDED_H

#include <stddef.h>

/* web/: the page, its style sheet, its scripts in their order, and the Content-Security-Policy that lets
 * exactly those in. */
extern const char onv_page_html[], onv_page_css[], onv_page_policy[];
extern const char *const onv_page_scripts[];
extern const size_t onv_n_page_scripts;

#endif
