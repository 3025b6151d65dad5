/* Small ONNX models for tests, encoded by hand: nothing of the program under test is used.
 *
 *     model *m = model_new(17);
 *     model_input(m, "x", "f32[batch,3,224,224]");
 *     model_weight(m, "w", "f32[64,3,7,7]");
 *     model_node(m, "Conv", "conv1", "x w", "y", "strides=[2,2] pads=[3,3,3,3]");
 *     model_output(m, "y", "f32");
 *     onv_analysis *a = model_analyse(m, &options);   // fails the test where it fails
 *     model_free(m);
 *
 * A subgraph stands before the node that owns it, between model_begin and model_end:
 *
 *     model_begin(m, "then_branch");
 *     model_node(m, "Relu", "t", "x", "a", "");
 *     model_output(m, "a", "f32");
 *     model_end(m);
 *     model_begin(m, "else_branch"); ... model_end(m);
 *     model_node(m, "If", "if", "c", "y", "");
 *
 * Types: f32 f16 f64 i64 i32 i8 u8 bool str, then dims: numbers, symbols, ? for none; without brackets
 * there is no shape. In lists of names "-" is an absent optional one.
 */
#ifndef ONV_TESTS_ONNX_WRITER_H
#define ONV_TESTS_ONNX_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "onnxvram/onnxvram.h"

typedef struct model model;

/* Models as lines of text, each of which is one of the calls below:
 *
 *     OWNED_MODEL m = model_read(17, "in x f32[batch,3,224,224]", "weight w f32[64,3,7,7]",
 *                                "y = Conv(x w) conv1 strides=[2,2] pads=[3,3,3,3]", "out y f32");
 *
 * Before a name or a text: in, out, info, weight, constant, import, int, ints, bool, float, begin, source, class, call, trace, role,
 * folded, rules, parameters; "end" alone. */
#define model_read(opset, ...) model_of_lines((opset), MODEL_LINES(__VA_ARGS__))
#define model_add(m, ...)      model_add_lines((m), MODEL_LINES(__VA_ARGS__))
#define MODEL_LINES(...)                                                                           \
    (const char *const[]){__VA_ARGS__}, sizeof(const char *[]){__VA_ARGS__} / sizeof(const char *)
model *model_of_lines(int64_t opset, const char *const *lines, size_t n);
void model_add_lines(model *m, const char *const *lines, size_t n);
/* The same lines as one text, with ";" between them. */
void model_add_text(model *m, const char *text);

model *model_new(int64_t opset);
void model_free(model *m);

/* The variable's model is released at the end of its block. */
void end_model(model **m);
#define OWNED_MODEL __attribute__((cleanup(end_model))) model *

void model_input(model *m, const char *name, const char *type);
void model_output(model *m, const char *name, const char *type);
void model_value_info(model *m, const char *name, const char *type);

/* An initializer whose data is in a file that is not there. */
void model_weight(model *m, const char *name, const char *type);

/* The same with its elements, `bytes` of them; zeros where `data` is NULL. */
void model_weight_data(model *m, const char *name, const char *type, const void *data,
                       size_t bytes);

/* A weight as a Constant node. */
void model_constant(model *m, const char *name, const char *type);

/* An int64 vector, inline; a scalar with model_int, a bool with model_bool, a float with model_float. */
void model_ints(model *m, const char *name, size_t count, const int64_t *values);
void model_int(model *m, const char *name, int64_t value);
void model_bool(model *m, const char *name, bool value);
void model_float(model *m, const char *name, float value);

/* The opset of another domain than ONNX's. */
void model_import(model *m, const char *domain, int64_t version);

/* Operators of another domain are called "domain::Op". Attributes: "axis=1 alpha=0.5 mode='linear'
 * pads=[1,1,1,1]"; numbers with a point are floats. */
void model_node(model *m, const char *op_type, const char *name, const char *inputs,
                const char *outputs, const char *attributes);

/* A subgraph, the named attribute of the next node that is written after its end. What stands between
 * goes into it; they nest. */
void model_begin(model *m, const char *attribute);
void model_end(model *m);

/* Where PyTorch's exporter says that the next node comes from: a module and an operation. */
void model_source(model *m, const char *module, const char *operation);

/* The same: the module's class and PyTorch's name of the operation, "aten.silu.default". */
void model_class(model *m, const char *module_class, const char *aten);
/* The line of Python that called it. */
void model_trace(model *m, const char *line);
/* It stood in a graph of this number inside the network's. */
void model_inner_trace(model *m, unsigned graph, unsigned number, const char *line);
/* The same with what called that: a line of the model's own forward, and of a helper between. */
void model_statement(model *m, unsigned number, const char *line);
/* PyTorch's call that it was, "aten.linear.default", with these arguments. */
void model_call(model *m, const char *operation, const char *arguments);

/* What it says an initializer is: "PARAMETER", "BUFFER". */
void model_role(model *m, const char *name, const char *role);
/* Of which values the exporter computed an initializer: "['a.weight', 'select']". */
void model_folded(model *m, const char *name, const char *from);
/* The next node came from these rules of the exporter's optimizer. */
void model_rules(model *m, const char *rules);
/* The graph's note of all parameters: names with a space between. Calls name "a.b" "%p_a_b". With
 * "~" before it, it is a buffer, with "^" one that the pass writes. */
void model_parameters(model *m, const char *names);

/* Any note of the next node, and of the graph. */
void model_note(model *m, const char *key, const char *value);
void model_graph_note(model *m, const char *key, const char *value);

/* The file; belongs to the model. */
const unsigned char *model_bytes(model *m, size_t *size);

onv_status model_try(model *m, const onv_options *options, onv_analysis **analysis,
                     onv_error *error);
onv_analysis *model_analyse(model *m, const onv_options *options);

/* The shape of a tensor as text; fails the test where there is none of that name. */
const char *model_shape(const onv_analysis *analysis, const char *name);

#endif
