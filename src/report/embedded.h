/* What cmake/embed.cmake makes of web/. */
#ifndef ONV_REPORT_EMBEDDED_H
#define ONV_REPORT_EMBEDDED_H

#include "base/embedded.h"

/* The page, its style sheet, and its scripts in their order, each up to ONV_PAGE_FILE_END; and the
 * Content-Security-Policy that lets exactly those in. */
#define ONV_PAGE_FILE_END '\1'
extern const onv_embedded onv_page_files;
extern const char onv_page_policy[];

#endif
