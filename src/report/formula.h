/* Free dims in words: the pieces of the formula of the peak, and options that bind them. */
#ifndef ONV_REPORT_FORMULA_H
#define ONV_REPORT_FORMULA_H

#include "report/page.h"
#include "report/report.h"

/* "from sequence = 86 on", "up to sequence = 85": for which sizes the piece is the peak. Empty where no
 * single dim decides. NULL without memory. */
const char *onv_range_text(const onv_view *view, onv_arena *arena, const onv_piece *piece);

/* "--batch 8", "--dim sequence=128" as a shell takes it; N where `size` is below 0. Empty without memory. */
const char *onv_binding_option(const onv_page *page, const onv_free_dim *dim, int64_t size);

/* A word of a command line, in quotes where it needs them. Empty without memory. */
const char *onv_shell_word(const onv_page *page, const char *text);

#endif
