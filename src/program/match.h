/* Whether a program is that of a model, and which sizes it then has. */
#ifndef ONV_PROGRAM_MATCH_H
#define ONV_PROGRAM_MATCH_H

#include "ir/model.h"

/* Requires: a view with nothing bound, and a model whose inputs are bound. Compares inputs (by name, else by place: types and the
 * dims that are numbers) and the parameters that both name. sizes[k], for symbol k of the program, becomes the size of the
 * model's input in the place of the symbol, or the symbol itself where that is free. ONV_ERR_USAGE: another model's; the message says the
 * first difference. */
onv_status onv_program_match(onv_model *view, const onv_model *model, onv_dim *sizes,
                             onv_error *err);

#endif
