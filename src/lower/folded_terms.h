/* What the forward pass computes of parameters alone, and the exporter replaced by a constant, as a term of calls.
 *
 *     softmax, of "['mm', 'nodes', 'relu', 'transpose']"      softmax(relu(mm(nodes, transpose(nodes))))
 *
 * The note of a constant has the names of all values behind it, in alphabetical order: parameters, buffers and calls, whose
 * names tell their operations, and numbers their order among calls of one kind. Which call reads which result is found: the
 * last call first, each with what can be the last one before it, as far as shapes allow. Sizes that neither the constant nor
 * the parameters in the file tell are unknowns of the term. */
#ifndef ONV_LOWER_FOLDED_TERMS_H
#define ONV_LOWER_FOLDED_TERMS_H

#include "lower/weight.h"

enum {
    ONV_TERM_MOST_UNKNOWNS = 8,
    ONV_TERM_MOST = 48,
    ONV_TERM_MOST_FOLDED = 8192 /* elements of what exporters compute with */
};

typedef enum onv_term_form {
    ONV_TERM_LEAF,      /* a parameter or a buffer */
    ONV_TERM_MADE,      /* of no parameter: a range, zeros */
    ONV_TERM_POINTWISE, /* of one operand, of its shape */
    ONV_TERM_VIEW,
    ONV_TERM_PART, /* one of several along a dim */
    ONV_TERM_COPY, /* what repeats is expanded before */
    ONV_TERM_PRODUCT,
    ONV_TERM_LINEAR, /* operand, weight, bias or none */
    ONV_TERM_PAIR,   /* pointwise, of two operands */
    ONV_TERM_JOIN,
    ONV_TERM_REDUCTION, /* and what is computed of it: by rows of the operand */
    ONV_TERM_ROWS,      /* of a table */
    ONV_TERM_OTHER,     /* a call that has no rule: as far as no parameter leads to it */
    ONV_TERM_SCALED,    /* weight norm: directions, and their lengths, in one kernel */
} onv_term_form;

typedef enum onv_term_keeps {
    ONV_TERM_KEEPS_NOTHING,
    ONV_TERM_KEEPS_RESULT,
    ONV_TERM_KEEPS_OPERAND,
} onv_term_keeps;

/* A kind of call. `late`: how late it mostly is among calls that lead to one result. */
typedef struct onv_term_kind {
    const char *call, *op; /* in PyTorch, and as operations are named here */
    uint8_t form, keeps, late;
} onv_term_kind;

/* Dims below 0 are unknowns: -1 - k. */
typedef struct onv_term_shape {
    bool is_wild;     /* any shape of as many elements, which may be that */
    bool is_reshaped; /* and which is another one */
    onv_shape dims;
} onv_term_shape;

typedef struct onv_term {
    const onv_term_kind *kind; /* NULL: a leaf */
    const char *name;          /* of the call, interned; of the parameter or the buffer */
    uint8_t form;              /* onv_term_form */
    uint8_t n_in;
    uint16_t in[3];
    onv_term_shape shape;
} onv_term;

typedef struct onv_folded_plan {
    const onv_term *terms; /* operands before what reads them; the last one is the constant */
    uint32_t n_terms, n_unknowns;
    int64_t sizes[ONV_TERM_MOST_UNKNOWNS];  /* 0: not told */
    int64_t likely[ONV_TERM_MOST_UNKNOWNS]; /* what is taken then */
    bool is_assumed;
} onv_folded_plan;

/* NULL: no term is found, or what is computed is another rule's. `l->emit.status` tells of failures. */
onv_folded_plan *onv_folded_solve(onv_lowering *l, uint32_t value);

/* Of a parameter or a buffer, as the file or another term tells. */
bool onv_folded_leaf_shape(const onv_lowering *l, const char *name, onv_shape *shape);

/* The dim in the plan: 0 where it is not told. */
int64_t onv_term_dim(const onv_folded_plan *plan, int64_t dim);

#endif
