/* Pieces of the formula of the peak, in words. */
#ifndef ONV_REPORT_FORMULA_H
#define ONV_REPORT_FORMULA_H

#include "report/report.h"

/* "from sequence = 86 on", "up to sequence = 85": for which sizes the piece is the peak. Empty where no
 * single dim decides. NULL without memory. */
const char *onv_range_text(const onv_view *view, onv_arena *arena, const onv_piece *piece);

#endif
