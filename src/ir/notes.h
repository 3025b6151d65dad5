/* What PyTorch's exporter notes of a node: the call that it was exported from. */
#ifndef ONV_IR_NOTES_H
#define ONV_IR_NOTES_H

#include <string.h>

#include "ir/model.h"

/* What a statement of Python tells of its operation: `x += y` and `x.relu_()` overwrite x, `relu(x)` makes a new
 * tensor; `relu(x, inplace=self.inplace)` does not tell. */
typedef enum onv_in_place {
    ONV_IN_PLACE_UNTOLD = 0,
    ONV_IN_PLACE_YES,
    ONV_IN_PLACE_NO,
} onv_in_place;

/* What PyTorch's exporter notes of a node, or a program says of a call. Those of a node are made with it, never
 * changed later, and shared by copies of the model. Texts are "" where nothing says them, but for those that may be NULL. */
typedef struct onv_notes {
    /* Where it came from. */
    const char *scope;        /* the module around it, "layer1.0.conv1" */
    const char *source_op;    /* PyTorch's call, "conv2d_1"; one for all nodes it became */
    const char *module_class; /* of `scope`: "torch.nn.modules.conv.Conv2d" */
    const char *aten_op;      /* PyTorch's operation, "aten.conv2d.default" */
    /* The modules whose calls are around it, outer first, as Python writes a list of them:
     * "['', 'layer1', 'layer1.0', 'layer1.0.conv1'". */
    const char *calls;
    const char *call_classes; /* of those */
    const char *statements;   /* that called it: load/statements.h */
    const char *line;         /* of Python: "net/model.py:213"; NULL: not told */
    /* Its lines of Python. */
    onv_in_place in_place;   /* as the last of them tells */
    const char *function;    /* the torch.autograd.Function that it is part of; or "" */
    const char *inner_graph; /* that it stood in, "<eval_with_key>.7"; NULL: the network's */
    /* The innermost module that is given a member of a cache, or whose call binds one; or NULL. */
    const char *cache_call;
    bool copies_by_index; /* index_copy, written as index_put */
    bool is_checkpointed; /* inside of torch.utils.checkpoint */
    /* Its call. */
    bool has_bias;         /* PyTorch's linear layer has one, even if the node has none */
    bool asks_for_float32; /* a softmax, whatever it is given */
    bool lacks_scale;      /* a layer norm without weights, of which exporters write ones */
    bool smooths_labels;   /* a cross-entropy */
    bool takes_buffer;     /* arguments are buffers, and none is a parameter */
    bool tells_dropout;    /* attention, in `dropout` */
    float dropout;
    uint32_t clones;   /* bits of inputs of which PyTorch's call had a clone */
    uint32_t detached; /* likewise, that were detached from the graph of gradients */
    uint32_t neutral;  /* likewise, to which 0 was added, or that were multiplied or divided by 1 */
    uint32_t n_parameters;
    const char *const *parameters; /* arguments that are parameters, in their order: names */
    /* An argument that the exporter merged with an equal one, which the node reads: "sub_5"; or NULL. */
    const char *merged_call;
    const char *weight_call; /* that gave the weight of a linear layer or a batch norm; or NULL */
    const char *padded;      /* what a convolution was given, "pad_2"; NULL: not told */
    const char *padding;     /* what it pads itself, "[1, 1"; "": nothing */
    /* The exporter's own rules. */
    bool has_pad; /* a Pad that it joined to the convolution */
} onv_notes;

/* A piece of a note. */
typedef struct onv_words {
    const char *at;
    size_t length;
} onv_words;

static inline bool onv_words_same(onv_words a, onv_words b)
{
    return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

/* The next element of a list of texts that Python wrote, as `calls`; false where there is none. */
bool onv_words_next_quoted(const char **list, onv_words *element);

/* Of a node without any. */
extern const onv_notes onv_no_notes;

static inline const onv_notes *onv_noted(const onv_node *node)
{
    return node->notes != NULL ? node->notes : &onv_no_notes;
}

/* Whether the export notes the operation at all. */
bool onv_node_is_noted(const onv_node *node);

/* "silu" is "aten.silu.default"; of several names, which have a space between, any. */
bool onv_node_is_aten(const onv_node *node, const char *names);

/* any() and all(). */
bool onv_node_tells_truth(const onv_node *node);

/* An LSTM, a GRU or an RNN, noted or not. */
bool onv_node_is_recurrent(const onv_node *node);

/* "zeros_like_2" of "zeros_like": the name of a call of that operation, or of one of several, as above. */
bool onv_is_call_of(const char *name, const char *operations);

#endif
