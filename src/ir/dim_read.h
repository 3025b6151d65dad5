/* Sizes as sympy writes them, in programs and in names of dims, become dims: srepr ("Mul(Integer(2), Symbol('s77', ...))", PyTorch 2.7
 * and later) or str ("2*s77 + 1", before).
 *
 * Fractions are exact inside of an expression: a size is a whole number, so that their floor is the size. What has
 * no dim (Where, bit operations, functions of the user's) is unknown. Nesting is bounded.
 */
#ifndef ONV_IR_DIM_READ_H
#define ONV_IR_DIM_READ_H

#include "base/status.h"
#include "base/strings.h"
#include "ir/dim.h"

/* Symbols are made in `pool`, with names in `strings`. *unread is, where *dim is unknown, what has no dim: a static text, or one
 * in `strings`. ONV_ERR_FORMAT: the text is no expression; ONV_ERR_LIMIT: nested too deep. */
onv_status onv_dim_read(const char *text, onv_dims *pool, onv_strings *strings, onv_dim *dim,
                        const char **unread, onv_error *err);

#endif
