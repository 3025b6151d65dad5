/* The view of a program: a typed model whose nodes are the calls, so that what works on models (lifetimes,
 * modules, plans, reports) works on programs.
 *
 *   node i   call i: its operator without overload ("conv2d", of the domain "pytorch.aten"), its FX name, the
 *            modules around it; graphs among its arguments are its subgraphs
 *   value i  value i: parameters, buffers and constants are initializers with their names in the network
 */
#ifndef ONV_PROGRAM_VIEW_H
#define ONV_PROGRAM_VIEW_H

#include "ir/model.h"
#include "program/program.h"

/* Requires: the model that the program was read for, without graphs. Sets model->program. Sizes are as in the program: expressions
 * over its symbols. ONV_ERR_FORMAT: a parameter without a size. */
onv_status onv_program_view(const onv_program *program, onv_model *model, onv_error *err);

/* Replaces symbols in the types of a view and in its program, which is copied where something changes. `sizes` are those of
 * the program's symbols; one that stays free has itself. Symbols that only data decides, and that have a bound, count with it.
 * ONV_ERR_USAGE: a tensor would have a negative size. Notes sizes that the export does not allow. */
onv_status onv_program_bind(onv_model *view, const onv_dim *sizes, onv_error *err);

/* On what figures of eager PyTorch rest: "recording", "program"; of a graph: "notes" of its exporter, or "graph". */
const char *onv_program_evidence(const onv_model *model);

/* "a recording", "an archive of torch.export". */
static inline const char *onv_program_source_text(const onv_program *program)
{
    return onv_program_is_recorded(program) ? "a recording" : "an archive of torch.export";
}

#endif
