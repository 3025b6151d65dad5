/* ONNX files written field by field, so that a test can also write what no library would.
 *
 *     msg *graph = m_graph("x:f32[2,3]", "y");
 *     m_put(graph, G_NODE, m_node("Relu", "r", "x", "y"));
 *     msg *file = m_model(graph);          // takes the graph
 *     ... file->at, file->count ...
 *     m_free(file);
 *
 * A message that is put into another is freed there. Lists of names are separated by blanks, "-" is
 * the absent optional one.
 */
#ifndef ONV_TESTS_LOAD_BYTES_H
#define ONV_TESTS_LOAD_BYTES_H

#include <stdint.h>

#include "ir/model.h"

typedef struct msg {
    unsigned char *at;
    size_t count, capacity;
} msg;

/* Field numbers of onnx.proto. */
enum {
    M_IR = 1,
    M_PRODUCER = 2,
    M_GRAPH = 7,
    M_OPSET = 8,
    M_FUNCTION = 25,
    G_NODE = 1,
    G_INIT = 5,
    G_DOC = 10,
    G_INPUT = 11,
    G_OUTPUT = 12,
    G_INFO = 13,
    G_SPARSE = 15,
    N_ATTR = 5,
    N_DOMAIN = 7,
    N_OVERLOAD = 8,
    N_METADATA = 9,
    A_NAME = 1,
    A_FLOAT = 2,
    A_INT = 3,
    A_STRING = 4,
    A_TENSOR = 5,
    A_GRAPH = 6,
    A_FLOATS = 7,
    A_INTS = 8,
    A_STRINGS = 9,
    A_GRAPHS = 11,
    A_TYPE = 20,
    A_REF = 21,
    A_SPARSE = 22,
    T_DIMS = 1,
    T_DTYPE = 2,
    T_FLOATS = 4,
    T_INT32S = 5,
    T_INT64S = 7,
    T_NAME = 8,
    T_RAW = 9,
    T_DOUBLES = 10,
    T_UINT64S = 11,
    T_EXTERNAL = 13,
    T_LOCATION = 14,
    F_NODE = 7,
    F_OPSET = 9,
    F_DEFAULT = 11,
    F_INFO = 12,
    F_OVERLOAD = 13,
};

msg *m_new(void);
void m_free(msg *m);

/* Raw wire. */
void m_varint(msg *m, uint64_t value);
void m_tag(msg *m, uint32_t field, unsigned wire_type);
void m_append(msg *m, const void *data, size_t bytes);

/* Fields. */
void m_int(msg *m, uint32_t field, int64_t value);
void m_f32(msg *m, uint32_t field, float value);
void m_text(msg *m, uint32_t field, const char *text);
void m_bytes(msg *m, uint32_t field, const void *data, size_t bytes);
void m_put(msg *m, uint32_t field, msg *child);

/* Messages. */
msg *m_model(msg *graph); /* IR 8, opset 17 */
msg *m_opset(const char *domain, int64_t version);
msg *m_graph(const char *inputs, const char *outputs); /* as m_info, separated by blanks */
msg *m_info(const char *text);                         /* "x", "x:f32", "x:f32[batch,3,?,-1]" */
msg *m_node(const char *op_type, const char *name, const char *inputs, const char *outputs);
msg *m_attr(const char *name, onv_attr_kind kind);
msg *m_attr_int(const char *name, int64_t value);
msg *m_attr_graph(const char *name, msg *graph);
msg *m_attr_tensor(const char *name, msg *tensor);
msg *m_attr_ref(const char *name, onv_attr_kind kind, const char *ref);
msg *m_tensor(const char *name, onv_dtype dtype, int rank, const int64_t *dims);
msg *m_raw(const char *name, onv_dtype dtype, int64_t elems, const void *data, size_t bytes);
msg *m_pair(const char *key, const char *value);
msg *m_external(const char *name, int64_t elems, const char *location); /* float32 */
msg *m_function(const char *domain, const char *name, const char *inputs, const char *outputs);
msg *m_rich_model(void); /* a file with something of everything, the graph last */

/* Loads and keeps going; the bytes must outlive the model. */
onv_status m_load(const msg *file, onv_model *model, onv_error *err);

/* Loads, fails the test where that fails, and gives the model as text, one graph a line:
 *     "(x)->(y): Relu r(x)->y; If if(c)->z\nif/then_branch()->(if/then_branch/t): ...\n" */
char *m_describe(const msg *file);

#endif
