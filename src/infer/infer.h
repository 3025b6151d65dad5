/* Shape inference: a checked graph and bindings become a typed graph.
 *
 * Requires: onv_graph_check has run. Gives: the type (and, for small tensors, the contents) of every
 * value, the operator row, MACs and element operations of every node. What stays unknown is marked
 * unknown and explained in the diagnostics; declared types (value_info) serve where a rule knows
 * less. Cost: linear in nodes, plus what is folded.
 *
 * Bindings apply to the graph inputs before inference, so that a bound model runs on numbers.
 * A batch that the export fixed is replaced too: see driver.h.
 */
#ifndef ONV_INFER_INFER_H
#define ONV_INFER_INFER_H

#include "ir/model.h"
#include "ir/weight_format.h"
#include "onnxvram/options.h"

/* One binding as it took effect, for the report. */
typedef struct onv_bound {
    const char *name; /* a symbolic dim, "batch", or the input whose shape was given */
    int64_t size;     /* -1: `name` is an input, its type tells its shape */
} onv_bound;

/* A symbol left free and what would bind it. */
typedef struct onv_free_dim {
    const char *name;
    const char *input; /* an input it stands in */
    int axis;
} onv_free_dim;

typedef struct onv_infer_info {
    ONV_VEC(onv_bound) bounds;
    ONV_VEC(onv_free_dim) free_dims;
    ONV_VEC(const char *)
    data_dims; /* symbols that only data decides, of what has no size: `--dim` binds them; some of them */
    uint64_t unknown_values;   /* node outputs of unknown size */
    const char *unknown_cause; /* the first operator that left one unknown, NULL if none */
    const char *unknown_node;
} onv_infer_info;

void onv_infer_info_cleanup(onv_infer_info *info);

/* Whether the options bind sizes or contents of inputs. */
bool onv_infer_has_sizes(const onv_options *options);

/* A node that contradicts its operator's definition is an error under `strict`, and where sizes are bound, which may be what it contradicts:
 * then but for nodes that are marked so before (onv_node.contradicts). Else a warning, and its outputs have what the file declares. */
onv_status onv_infer(onv_model *model, const onv_options *options, onv_infer_info *info,
                     onv_error *err);

/* The bindings alone, of a model whose types are known: the view of a program. *sizes are by the number of a symbol, which has
 * itself where it stays free; in the model's arena. A batch that the export fixed cannot be changed: ONV_ERR_USAGE. */
onv_status onv_infer_bind(onv_model *model, const onv_options *options, onv_infer_info *info,
                          const onv_dim **sizes, onv_error *err);

/* What has no size, once it is bound. */
void onv_infer_find_unknown(onv_model *model, onv_infer_info *info);

/* As if every float tensor (float32, float64; 16-bit ones too) were of that type, weights included:
 * what a cast of the model to it would change in memory. Where most weights are in 16 bits already and
 * `to` is such a type, what is wider was cast so by the network, and stays. ONV_UNDEFINED: nothing. */
onv_status onv_infer_cast_floats(onv_model *model, onv_dtype to, onv_error *err);

/* Dims that are two others together: an attention mask over a key-value cache is as long as the past and the new tokens.
 * Exporters give it a dim of its own, whose size may contradict theirs.
 *
 * They are known by the names that exporters give: "total" or "past + sequence" beside "past" (or "cache") and "sequence".
 */

/* Whether the name of a dim has that word of small letters in it, whatever its own are. */
bool onv_infer_name_holds(const char *name, const char *word);

/* Whether a dim of the model, free or bound, is the sum of two others of it. */
bool onv_infer_is_total(const onv_infer_info *info, const char *name, const char **past,
                        const char **sequence);

/* A warning for each such dim that is bound to another size than both together. */
void onv_infer_check_totals(onv_model *model, const onv_infer_info *info);

/* Weights as if they were in fewer bits.
 *
 * Requires: inference, and casts. Gives: matrices that nothing but MatMul and Gemm read as their second
 * operand, themselves or transposed, have the bytes of a format (ir/weight_format.h). Everything else stays as
 * it is: tables that Gather reads, even if a product reads them too, norms, biases, convolutions. Cost: linear.
 */

/* What became of the weights. */
typedef struct onv_quantized {
    const onv_weight_format *format; /* NULL: not asked for */
    uint32_t n_matrices;
    uint64_t bytes_before, bytes; /* of them */
    uint64_t bytes_left;          /* of all others, and of these: */
    uint64_t bytes_tables, bytes_convolutions;
} onv_quantized;

/* ONV_ERR_USAGE where there is no such matrix. */
onv_status onv_infer_quantize(onv_model *model, const onv_weight_format *format,
                              onv_quantized *result, onv_error *err);

#endif
