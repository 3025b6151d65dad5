/* The text of operator cases becomes values, attributes and back; see case.h for the language. */
#ifndef ONV_TESTS_OPS_CASE_PARSE_H
#define ONV_TESTS_OPS_CASE_PARSE_H

#include "ops/op.h"

enum { CASE_MAX_VALUES = 64 };

/* What a graph attribute's outputs are. Stands in for inference of the subgraph. */
typedef struct case_graph {
    uint32_t n_outputs;
    onv_op_value *outputs;
} case_graph;

/* What a tensor attribute holds. Stands in for reading its payload. */
typedef struct case_tensor {
    const onv_tensor *tensor;
    const onv_known *known;
} case_tensor;

typedef struct case_parser {
    onv_model *model;
    const char *at;    /* the rest of the text */
    const char *error; /* set once: what was expected */
    case_graph graphs[4];
    uint32_t n_graphs;
    case_tensor tensors[4];
    uint32_t n_tensors;
} case_parser;

typedef struct case_value {
    bool present;
    onv_op_value value;
} case_value;

/* All values of the text; returns their number. */
uint32_t case_parse_values(case_parser *p, const char *text, case_value *values);

/* All attributes of the text, in the model's arena; returns their number. */
uint32_t case_parse_attrs(case_parser *p, const char *text, onv_attr **attrs);

const char *case_dtype_text(onv_dtype dtype);

/* The value as the language writes it, without spaces. `bounds`: data-dependent symbols replaced by
 * their bounds, contents left out. */
const char *case_value_text(onv_model *model, const onv_op_value *value, bool bounds);

/* `text` without blanks, in the arena. */
char *case_squeeze(onv_arena *arena, const char *text, size_t length);

/* The length of the first word of `text`: up to a blank outside of brackets and quotes. */
size_t case_word(const char *text);

#endif
