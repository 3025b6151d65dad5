/* The operator table.
 *
 * One operator is one row of plain data in the file of its family (a .c file under src/ops, named
 * after ONNX's definition folders). families.def lists the families; onv_op_find picks the row
 * whose `since` is the highest one not above the model's opset. A row exists per version that
 * changed shapes, arity or memory semantics; not per version of the documentation.
 *
 * A rule sees its node only through onv_op_ctx and the functions below: types and known contents of
 * inputs, attributes, and setters for the outputs. It never sees the graph.
 *
 * What a rule does when it knows too little: it sets what it knows (a dtype, a rank, some dims) and
 * returns ONV_OK; nothing is ever guessed. What it does when the node contradicts the operator's
 * definition: `return onv_op_fail(c, "...")`; the outputs have what the file declares then, and a warning
 * says why.
 * Running out of memory inside dims or setters is sticky and checked by the caller of the rule, so
 * that rules stay free of it.
 */
#ifndef ONV_OPS_OP_H
#define ONV_OPS_OP_H

#include "base/fail.h"
#include "ir/model.h"

enum { ONV_OP_MAX_ARITY = INT16_MAX };

typedef struct onv_op onv_op;
typedef struct onv_op_ctx onv_op_ctx;

/* A rule: fills output types (infer) or output contents (fold). */
typedef onv_status (*onv_op_rule)(onv_op_ctx *c);

/* Multiply-accumulates (or element operations) of the node, after inference; unknown if sizes are. */
typedef onv_dim (*onv_op_count)(onv_op_ctx *c);

/* Bit k of the masks: input or output k. Inputs beyond 31 share bit 31. */
#define ONV_BIT(k) ((uint32_t)1 << (k))
#define ONV_ALL    UINT32_MAX
/* The first n of them. */
#define ONV_BITS(n) (ONV_BIT(n) - 1)
/* All that have one type. */
#define ONV_ALL_ALIKE .alike = ONV_BITS(24)

typedef enum onv_op_flags {
    ONV_OP_RANDOM = 1 << 0,         /* draws random numbers: recomputing gives another result */
    ONV_OP_SUBGRAPH = 1 << 1,       /* runs subgraphs held in attributes */
    ONV_OP_DATA_DEPENDENT = 1 << 2, /* the size of an output depends on the data */
    ONV_OP_HOST = 1 << 3,           /* works on shapes and scalars: no device memory of its own */
    ONV_OP_WEIGHT_ATTRS = 1 << 4, /* what it has learnt stands in its attributes: trees, vectors */
} onv_op_flags;

/* Memory semantics (ir/model.h): of the row, or of the node where an attribute decides. */
typedef onv_traits onv_op_traits;

struct onv_op {
    const char *name;
    int32_t since;
    /* Inputs that have one type (a type parameter of ONNX's schema), as bits; inputs beyond 23 share bit 23. */
    uint32_t alike : 24;
    uint32_t flags : 7;
    /* `with` is a line of op_shapes.h, from the inputs on: the row is read when it is first found. */
    bool says : 1;
    struct {
        int16_t min, max;
    } in, out;
    onv_op_rule infer; /* required; it may set contents, too */
    const void *with;  /* what its rules read of the row: of onv_alias_infer an onv_alias */
    onv_op_rule fold;  /* contents of small outputs that infer did not set */
    onv_op_count macs; /* NULL: no multiply-accumulates */
    onv_op_traits (*traits_fn)(onv_op_ctx *c); /* where an attribute decides; overrides traits */
    onv_op_traits traits;
};

/* A row: name, first opset, fewest and most inputs, fewest and most outputs, the rule, and what else it has. */
#define ONV_OP(op, opset, min_in, max_in, min_out, max_out, ...)                                   \
    {                                                                                              \
        .name = op, .since = opset, .in = {min_in, max_in}, .out = {min_out, max_out},             \
        .infer = __VA_ARGS__                                                                       \
    }

/* A row whose line says all shapes. */
#define ONV_SAYS(op, opset, min_in, max_in, min_out, max_out, ...)                                 \
    ONV_OP(op, opset, min_in, max_in, min_out, max_out, onv_op_shapes_infer, .says = true,         \
           .with = __VA_ARGS__)

onv_status onv_op_shapes_infer(onv_op_ctx *c);

typedef struct onv_op_family {
    const char *domain;
    const onv_op *rows;
    size_t n_rows;
} onv_op_family;

/* The row for an operator of a domain at an opset version; NULL if there is none. An index over the
 * rows (onv_op_index) makes that constant time; it is copied once per analysis. */
typedef struct onv_op_index {
    const onv_op **rows; /* by number */
    onv_arena *arena;    /* a row that says its shapes in a line is read when it is first found */
} onv_op_index;

enum { ONV_OP_MAX_ROWS = 1024 };

bool onv_op_index_init(onv_op_index *index, onv_arena *arena);
const onv_op *onv_op_find(const onv_op_index *index, const char *domain, const char *name,
                          int32_t version);

/* A row of ONNX's own, which there is; from when an index was made on. */
const onv_op *onv_op_of_onnx(const char *name, int32_t version);

/* What the attributes of a node hold of weights, where its operator keeps them there: numbers of lists
 * and tensors, as they stand in the file; text takes nothing. Zeros for every other node and before
 * inference has found the operator; false where the sums do not fit 64 bits. */
bool onv_op_attr_weights(const onv_node *node, uint64_t *bytes, uint64_t *elems);

/* All families, for documentation and tests. */
extern const onv_op_family *const onv_op_families[];
extern const size_t onv_n_op_families;

typedef struct onv_op_value {
    onv_type type;
    const onv_known *known;
    bool bound; /* some dims are upper bounds */
} onv_op_value;

/* Loops that are run iteration by iteration: how many are right now, one inside the other, and how
 * many more nodes such runs may infer, of the whole model. */
typedef struct onv_op_unroll {
    uint32_t depth;
    uint64_t nodes_left;
} onv_op_unroll;

struct onv_op_ctx {
    onv_model *model;
    const onv_node *node;
    const onv_op *op;
    int32_t version;  /* of the opset; rules that span versions look at it */
    onv_dims *dims;   /* where expressions live */
    onv_arena *arena; /* for results; failure is sticky */
    uint32_t n_in, n_out;
    onv_op_value *in; /* inputs; kind ONV_TYPE_UNKNOWN for absent or unknown ones */
    const bool *in_present;
    onv_op_value *out; /* outputs, to be set */
    /* Provided by the layer above, as the next three: runs the body of a control-flow operator. Gives `n_in` types and contents to the
     * inputs of the subgraph, infers it, and sets `out` (n_out of them) to the types and contents of its outputs. Diagnostics of
     * a run that fails, and of a run that is repeated right away, are forgotten. */
    onv_status (*run_subgraph)(onv_op_ctx *c, onv_graph_id graph, const onv_op_value *in,
                               uint32_t n_in, onv_op_value *out, uint32_t n_out);
    /* Reads the contents of constant input k when a rule first asks for them, so that a weight that no rule looks at is never
     * touched. NULL: contents are all in `in`. */
    void (*load_known)(onv_op_ctx *c, uint32_t k);
    /* The contents of a tensor that an attribute holds; NULL where they are not tracked. NULL: none are. */
    const onv_known *(*read_tensor)(onv_op_ctx *c, const onv_tensor *tensor);
    /* What decides input k, for messages: "input 'sr' decides; bind it with --input-value sr=..."; NULL where nothing is found. NULL:
     * not known. */
    const char *(*deciders)(onv_op_ctx *c, uint32_t k);
    onv_op_unroll *unroll;  /* NULL: never */
    bool branches_must_fit; /* a branch that contradicts the shapes is an error */
    uint32_t n_merged;      /* dims merged so far: the places of what merging makes */
    onv_dim *said;          /* the dims that its line names, once its types are inferred */
    void *driver;           /* of the layer above */
    onv_error *err;
};

/* --- Inputs ------------------------------------------------------------------------------------ */

bool onv_op_has_in(const onv_op_ctx *c, uint32_t k);  /* present (given, not "") */
bool onv_op_has_out(const onv_op_ctx *c, uint32_t k); /* asked for */

/* The type of input k; an all-unknown type where it is absent. Never NULL. */
const onv_type *onv_op_in(const onv_op_ctx *c, uint32_t k);
onv_dtype onv_op_in_dtype(const onv_op_ctx *c, uint32_t k);
int onv_op_in_rank(const onv_op_ctx *c, uint32_t k);              /* -1: unknown */
onv_dim onv_op_in_dim(const onv_op_ctx *c, uint32_t k, int axis); /* axis may be negative */
/* All of them, into dims[ONV_MAX_RANK]: the rank, -1 where it is unknown. */
int onv_op_in_dims(const onv_op_ctx *c, uint32_t k, onv_dim *dims);
onv_dim onv_op_in_elems(const onv_op_ctx *c, uint32_t k);
/* The product of the dims from `first` to before `end`, which counts from the back where it is negative; unknown
 * without a rank. */
onv_dim onv_op_in_product(const onv_op_ctx *c, uint32_t k, int first, int end);

/* Known contents, or NULL. */
const onv_known *onv_op_in_known(onv_op_ctx *c, uint32_t k);

/* Contents as integer expressions: count and element i (unknown where not known or not integer). */
bool onv_op_in_ints(onv_op_ctx *c, uint32_t k, uint32_t *count);
onv_dim onv_op_in_int(onv_op_ctx *c, uint32_t k, uint32_t i);

/* The single integer of a 0- or 1-element input; unknown where not known. */
onv_dim onv_op_in_scalar(onv_op_ctx *c, uint32_t k);

/* --- Attributes -------------------------------------------------------------------------------- */

const onv_attr *onv_op_attr(const onv_op_ctx *c, const char *name);
int64_t onv_op_attr_int(const onv_op_ctx *c, const char *name, int64_t fallback);
double onv_op_attr_float(const onv_op_ctx *c, const char *name, double fallback);
const char *onv_op_attr_string(const onv_op_ctx *c, const char *name, const char *fallback);
/* The integers of a list attribute; NULL and *count 0 where absent. */
const int64_t *onv_op_attr_ints(const onv_op_ctx *c, const char *name, uint32_t *count);
/* A list of integers that is an attribute in old opsets and input k (k < 0: never) in newer ones.
 * false: neither is known (an input whose contents are unknown). Absent both: true, *count 0.
 * The array belongs to the arena. */
bool onv_op_ints(onv_op_ctx *c, const char *attr, int k, const onv_dim **list, uint32_t *count);
/* onnx data type given by an attribute ("to", "dtype"). */
onv_dtype onv_op_attr_dtype(const onv_op_ctx *c, const char *name, onv_dtype fallback);

/* The product of a few dims. */
onv_dim onv_op_product(onv_op_ctx *c, const onv_dim *dims, int n);
/* An axis in [-rank, rank) made non-negative; fails with a message otherwise. */
onv_status onv_op_axis(onv_op_ctx *c, int64_t axis, int rank, int *normal);

/* --- Outputs ----------------------------------------------------------------------------------- */

/* Sets output k; a no-op where it is not asked for. rank -1: unknown. `dims` is copied. Each of these returns
 * ONV_OK, with which a rule ends. */
onv_status onv_op_set_out(onv_op_ctx *c, uint32_t k, onv_dtype dtype, const onv_dim *dims,
                          int rank);
/* Output 0, with the dtype of input 0. */
onv_status onv_op_set_like(onv_op_ctx *c, const onv_dim *dims, int rank);
onv_status onv_op_set_out_type(onv_op_ctx *c, uint32_t k, const onv_type *type);
/* Same shape as input i, with that dtype. */
onv_status onv_op_set_out_like(onv_op_ctx *c, uint32_t k, uint32_t i, onv_dtype dtype);
/* A shape of unknown dims. */
onv_status onv_op_set_out_rank(onv_op_ctx *c, onv_dtype dtype, int rank);

/* New contents for output k, whose type must be set and static (or have a known count through
 * `dims`); elements start unknown. NULL where the output is not asked for, not static, or larger
 * than ONV_KNOWN_MAX_ELEMS. Filling the elements publishes them. */
onv_known *onv_op_new_known(onv_op_ctx *c, uint32_t k);

/* A failure that names node and operator. */
onv_status onv_op_fail(onv_op_ctx *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define onv_op_fail(c, ...) onv_failed(ONV_ERR_MODEL, onv_op_fail((c), __VA_ARGS__))

/* A warning on the model's list. */
void onv_op_warn(onv_op_ctx *c, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Text of a shape for messages, "[batch, 3, 224, 224]". */
const char *onv_op_shape_text(onv_op_ctx *c, const onv_type *type);
const char *onv_op_in_text(onv_op_ctx *c, uint32_t k); /* of input k */

/* --- Scalars (elements of known contents) ------------------------------------------------------ */

onv_scalar onv_scalar_unknown(void);
onv_scalar onv_scalar_int(onv_dim value);
onv_scalar onv_scalar_real(double value);
bool onv_scalar_is_real(onv_scalar s); /* a plain number of a float type: s.f, with i = 1 */
bool onv_scalar_is_known(onv_dtype dtype, onv_scalar s);

#endif
