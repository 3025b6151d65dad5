/* What reports say about one value: its interval, its size, its dims as text.
 *
 * A dim that only the data decides is shown as its upper bound, which is what memory counts; the
 * value then says that it is a bound.
 */
#ifndef ONV_REPORT_VALUE_H
#define ONV_REPORT_VALUE_H

#include "report/page.h"
#include "report/report.h"

/* The interval of a value; NULL for weights and constants. */
const onv_buffer *onv_view_interval(const onv_view *view, onv_value_id id);

/* False for what never is: values of branches that cannot be taken, and the weights that only those
 * read. */
bool onv_view_is_there(const onv_view *view, onv_value_id id);

/* The size in bytes; false where it is not a number. */
bool onv_view_bytes(const onv_view *view, onv_value_id id, uint64_t *bytes);

/* Whether shape and size are upper bounds. */
bool onv_view_is_bound(const onv_view *view, onv_value_id id);

/* "input", "output", "activation", "initializer", "constant". */
const char *onv_view_kind_name(const onv_view *view, onv_value_id id);
onv_tensor_kind onv_view_kind(const onv_view *view, onv_value_id id);

/* "float32"; "sequence(float32)" and the like for what is no tensor; "?" if not known. */
const char *onv_view_dtype(onv_arena *arena, const onv_type *type);

/* The dim, a bound where only the data decides and there is one. */
onv_dim onv_view_dim(const onv_view *view, onv_dim d);

/* A dim of that value: its bound only where the value's size is known, so that shape and size always
 * tell the same. */
onv_dim onv_view_value_dim(const onv_view *view, onv_value_id id, int axis);

/* "256x64x112x112", with names in it "batch×3×224" or "batch x 3 x 224", "scalar", "?". NULL without
 * memory. */
const char *onv_view_shape(const onv_view *view, onv_arena *arena, onv_value_id id,
                           onv_clean_mode mode);

/* The size of a tensor as `coef` bytes times dims that are not numbers (at most ONV_MAX_RANK, in
 * `factors`, sorted so that equal products are equal lists). False where it cannot be told. */
typedef struct onv_growth {
    uint64_t coef;
    uint32_t n;
    onv_dim factors[ONV_MAX_RANK];
} onv_growth;

bool onv_growth_of(const onv_type *type, onv_growth *growth);

/* "batch * (past + sequence)", with the page's multiplication sign. */
const char *onv_view_factors(const onv_view *view, const onv_page *page, const onv_growth *growth);

/* "784.0 MiB", "<= 12 B" (a bound), "3.1 MiB * batch", "4.0 KiB * ..." (more factors than are short;
 * the shape has them), "?", with the page's signs. */
const char *onv_view_size(const onv_view *view, const onv_page *page, onv_value_id id);

/* A node's name, or that of its first output where it has none. */
const char *onv_view_node_name(const onv_view *view, const onv_node *node);

/* The input whose whole shape was given; ONV_NO_VALUE for a dim. */
onv_value_id onv_view_bound_input(const onv_view *view, const onv_bound *bound);

#endif
