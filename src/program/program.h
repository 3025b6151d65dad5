/* The program: the ATen calls that eager PyTorch makes, as PyTorch itself wrote them down.
 *
 *   program ── graphs[] ── calls[]  ── arguments (values, numbers, lists, graphs), results (values)
 *           ├── values[] ── dtype, dims, strides; parameter, buffer, constant, input or result
 *           └── modules[], traces[]: where in the network, and in its code, a call was made
 *
 * A program is a fact: PyTorch's archive (torch.export.save), or a recording (onnxvram.record), which
 * knows when results die as well. It is data: it knows neither ONNX nor autograd, and rules of
 * operators (src/aten) alone say what a call keeps, views or overwrites.
 *
 * graphs[0] is the network's; others are arguments of calls of torch.ops.higher_order. Dims and
 * strides are expressions over the archive's symbols, whose names are those of the dims of its model
 * once that is known. Everything is in the arena of the model that the program was read for.
 */
#ifndef ONV_PROGRAM_PROGRAM_H
#define ONV_PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"
#include "ir/dim.h"
#include "ir/type.h"

#define ONV_NO_PROGRAM_VALUE UINT32_MAX
#define ONV_NO_CALL_INDEX    UINT32_MAX
#define ONV_NO_STORAGE       UINT32_MAX

typedef enum onv_program_value_kind {
    ONV_PROGRAM_RESULT = 0, /* of a call */
    ONV_PROGRAM_PARAMETER,
    ONV_PROGRAM_BUFFER,
    ONV_PROGRAM_CONSTANT, /* a tensor that is neither: the archive lists it */
    ONV_PROGRAM_INPUT,    /* of the network, or of an inner graph */
} onv_program_value_kind;

/* A tensor. Sizes in elements. */
typedef struct onv_program_value {
    const char *name;   /* unique in its graph: "conv2d_3" */
    const char *fqn;    /* PARAMETER, BUFFER, CONSTANT: its name in the network, "conv1.weight" */
    uint8_t kind;       /* onv_program_value_kind */
    uint8_t dtype;      /* onv_dtype */
    bool requires_grad; /* as the archive has it; of a PARAMETER: it is trained */
    bool is_persistent; /* BUFFER: it is in the state_dict */
    bool is_output;     /* of its graph: not of one that is an effect, as a buffer's new value */
    uint32_t rank;
    const onv_dim *dims, *strides; /* strides NULL: not known; both NULL where rank is 0 */
    onv_dim offset;                /* of its first element in its storage */
    uint32_t graph, call;          /* the call that makes it; ONV_NO_CALL_INDEX: none */
    uint32_t
        same_as; /* PARAMETER: another name of that one, which is the tensor; else ONV_NO_PROGRAM_VALUE */
    /* Of a recording alone, and of its values that it followed; else ONV_NO_STORAGE, ONV_NO_CALL_INDEX, false. */
    bool on_host;         /* it is in the host's memory */
    uint32_t storage;     /* values with the same number share memory */
    uint32_t freed_after; /* the call after which its storage was freed; ONV_NO_CALL_INDEX: never */
    bool is_kept;         /* autograd kept its storage for backward */
} onv_program_value;

typedef enum onv_argument_kind {
    ONV_ARGUMENT_NONE = 0,
    ONV_ARGUMENT_TENSOR,  /* value */
    ONV_ARGUMENT_TENSORS, /* values; ONV_NO_PROGRAM_VALUE where one is None */
    ONV_ARGUMENT_INT,     /* number: a dim, so that symbolic ones are of the same kind */
    ONV_ARGUMENT_INTS,    /* numbers */
    ONV_ARGUMENT_FLOAT,   /* real; NaN where it is symbolic */
    ONV_ARGUMENT_FLOATS,  /* reals */
    ONV_ARGUMENT_BOOL,    /* flag */
    ONV_ARGUMENT_BOOLS,   /* flags */
    ONV_ARGUMENT_STRING,  /* text */
    ONV_ARGUMENT_STRINGS, /* texts */
    ONV_ARGUMENT_DTYPE,   /* dtype */
    ONV_ARGUMENT_FORMAT,  /* of memory: text, "contiguous", "channels_last", "preserve" */
    ONV_ARGUMENT_DEVICE,  /* text, "cuda" */
    ONV_ARGUMENT_GRAPH,   /* graph: an index into graphs */
    ONV_ARGUMENT_OTHER,   /* of a kind that no rule reads: layouts, objects, symbolic conditions */
} onv_argument_kind;

typedef struct onv_argument {
    const char *name; /* as the operator's schema calls it: "self" */
    uint8_t kind;     /* onv_argument_kind */
    uint32_t count;   /* of the plural kinds */
    union {
        uint32_t value, graph;
        const uint32_t *values;
        onv_dim number;
        const onv_dim *numbers;
        double real;
        const double *reals;
        bool flag;
        const bool *flags;
        const char *text;
        const char *const *texts;
        uint8_t dtype; /* onv_dtype */
    };
} onv_argument;

/* A module of the network around a call, and the one around that. */
typedef struct onv_program_module {
    const char *path;       /* "layer1.0.conv1"; "" for the network itself */
    const char *class_name; /* "torch.nn.modules.conv.Conv2d" */
    const char *key;        /* of this call of it: "L__self__conv1@1" is the second one */
    uint32_t parent;        /* UINT32_MAX: none */
} onv_program_module;

typedef struct onv_program_call {
    const char *name;    /* of the graph's node: "conv2d_3" */
    const char *op_name; /* with its overload, without "torch.ops.": "aten.conv2d.default" */
    const onv_argument *arguments;
    const uint32_t *results; /* values; tensors alone; ONV_NO_PROGRAM_VALUE where one is None */
    uint32_t n_arguments, n_results;
    uint32_t module; /* the innermost; UINT32_MAX: not known */
    const char
        *trace; /* the stack of Python's lines, outer first, as the archive has it; NULL: none */
} onv_program_call;

typedef struct onv_program_graph {
    const char *name;             /* "" for the network's, "true_graph_0" */
    uint32_t call;                /* that it is an argument of; ONV_NO_CALL_INDEX: the network's */
    uint32_t first_call, n_calls; /* in `calls`, in order of execution */
    /* Values: tensors alone. Of the network: what its caller gives and gets, without parameters, buffers, constants. */
    const uint32_t *inputs, *outputs;
    uint32_t n_inputs, n_outputs;
} onv_program_graph;

/* What a symbol of the archive may be. */
typedef struct onv_program_symbol {
    const char *name; /* "s77" */
    onv_dim dim;
    int64_t low, high; /* INT64_MAX: no bound */
    bool is_made;      /* by a call ("u0"): only data decides it */
    uint32_t input,
        axis; /* the first input (by place) that has it as a dim, and where; UINT32_MAX: none */
} onv_program_symbol;

typedef enum onv_program_source {
    ONV_PROGRAM_ARCHIVE = 0, /* torch.export */
    ONV_PROGRAM_RECORDING,   /* onnxvram.record */
} onv_program_source;

typedef struct onv_program {
    const char *path;          /* of the file, or of the model that has it inside */
    const char *torch_version; /* "" where the file does not say */
    uint8_t source;            /* onv_program_source */
    bool knows_shared;         /* the file says which parameters are one tensor */
    bool is_training; /* it was traced in training mode; calls carry their own flags as well */
    /* One that was read has its arrays in the arena, too: nothing is added to them, or freed. */
    ONV_VEC(onv_program_value) values;
    ONV_VEC(onv_program_call) calls; /* of all graphs: those of a graph are a range */
    ONV_VEC(onv_program_graph) graphs;
    ONV_VEC(onv_program_module) modules;
    ONV_VEC(onv_program_symbol) symbols;
} onv_program;

static inline bool onv_program_is_recorded(const onv_program *p)
{
    return p->source == ONV_PROGRAM_RECORDING;
}

/* The argument of that name, or NULL: a call has those alone that differ from the operator's defaults. */
const onv_argument *onv_call_argument(const onv_program_call *call, const char *name);

/* Tensors among arguments, one by one; those of a list as well, None left out. */
typedef struct onv_values_in {
    const onv_argument *arguments;
    uint32_t count, at, within; /* arguments; the next one; the next of its list */
} onv_values_in;

static inline onv_values_in onv_values_of(const onv_program_call *call)
{
    return (onv_values_in){.arguments = call->arguments, .count = call->n_arguments};
}

bool onv_next_value(onv_values_in *in, uint32_t *value);

#endif
