#include "ckpt/joint.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

/* Views of one node, and masks, that are compared with a new one: equal ones are one. */
enum { MAX_VIEWS = 16, MAX_MASKS = 16 };

typedef struct builder {
    const onv_eager *eager;
    onv_joint *joint;
    uint32_t *node_of; /* by tensor of the tape */
    bool *has_grad;    /* by tensor: backward gives it a gradient */
    bool *is_made;     /* by tensor: an operation of the tape makes it */
    const onv_eager_op *op;
    uint32_t op_index;
    uint32_t var[128];                  /* of the recipe: by letter */
    uint32_t masks[MAX_MASKS], n_masks; /* operations that made one */
    bool failed;                        /* memory */
} builder;

/* --- Nodes ------------------------------------------------------------------------------------- */

static uint32_t add_node(builder *b, onv_joint_kind kind, bool is_tuple, uint64_t bytes,
                         const uint32_t *ins, uint32_t n_in)
{
    uint32_t index = (uint32_t)b->joint->nodes.count;
    onv_joint_node node = {.kind = (uint8_t)kind,
                           .is_tuple = is_tuple,
                           .op = b->op_index,
                           .tensor = ONV_NO_TENSOR,
                           .base = index,
                           .first_in = (uint32_t)b->joint->ins.count,
                           .bytes = bytes};
    for (uint32_t i = 0; i < n_in; i++) {
        if (ins[i] == ONV_JOINT_NONE) continue;
        if (!onv_vec_push(&b->joint->ins, ins[i])) b->failed = true;
        node.n_in++;
    }
    bool views = kind == ONV_JOINT_VIEW && node.n_in > 0 && !b->failed;
    if (views) node.base = b->joint->nodes.at[ins[0]].base;
    if (b->failed || index == ONV_JOINT_NONE || !onv_vec_push(&b->joint->nodes, node)) {
        b->failed = true;
        return ONV_JOINT_NONE;
    }
    return index;
}

static void read_node(builder *b, uint32_t node, bool fused)
{
    if (node == ONV_JOINT_NONE || b->failed) return;
    onv_joint_read read = {node, b->op_index};
    if (!onv_vec_push(&b->joint->reads, read)) b->failed = true;
    onv_joint_node *at = &b->joint->nodes.at[node];
    *(fused ? &at->fused_read : &at->apart_read) = true;
}

static const onv_eager_tensor *tensor_at(const builder *b, uint32_t tensor)
{
    return &b->eager->tensors.at[tensor];
}

static void set_node(builder *b, uint32_t tensor, uint32_t node)
{
    b->node_of[tensor] = node;
    if (node == ONV_JOINT_NONE || b->joint->nodes.at[node].tensor != ONV_NO_TENSOR) return;
    b->joint->nodes.at[node].tensor = tensor;
}

static void add_primal(builder *b, const onv_eager_storage *storage, uint64_t bytes,
                       uint32_t tensor)
{
    uint32_t node = add_node(b, ONV_JOINT_PRIMAL, false, bytes, NULL, 0);
    if (b->failed) return;
    b->joint->nodes.at[node].is_free = storage->kind != ONV_STORAGE_INPUT;
    if (tensor != ONV_NO_TENSOR) set_node(b, tensor, node);
}

/* What no operation makes: parameters, buffers, the batch. Some are not read by any. */
static void add_primals(builder *b, bool *is_read)
{
    for (uint32_t i = 0; i < b->eager->tensors.count && !b->failed; i++) {
        const onv_eager_tensor *t = tensor_at(b, i);
        const onv_eager_storage *storage = &b->eager->storages.at[t->storage];
        b->node_of[i] = ONV_JOINT_NONE;
        is_read[t->storage] = true;
        if (b->is_made[i] || storage->on_host || storage->kind > ONV_STORAGE_CONSTANT) continue;
        add_primal(b, storage, t->bytes, i);
    }
    for (uint32_t i = 0; i < b->eager->storages.count && !b->failed; i++) {
        const onv_eager_storage *storage = &b->eager->storages.at[i];
        if (!is_read[i] && storage->kind == ONV_STORAGE_BUFFER)
            add_primal(b, storage, storage->bytes, ONV_NO_TENSOR);
    }
}

/* --- Views ------------------------------------------------------------------------------------- */

static bool same_view(const builder *b, const onv_joint_node *node, const onv_eager_tensor *t)
{
    if (node->tensor == ONV_NO_TENSOR) return false;
    const onv_eager_tensor *u = tensor_at(b, node->tensor);
    if (u->rank != t->rank || u->bytes != t->bytes) return false;
    for (uint32_t i = 0; i < t->rank; i++)
        if (u->dims[i] != t->dims[i] || u->strides[i] != t->strides[i]) return false;
    return true;
}

/* Where a view begins is not known: only those that hold all of it can be told to be equal. */
static uint32_t find_view(const builder *b, uint32_t from, const onv_eager_tensor *t)
{
    const onv_joint_node *nodes = b->joint->nodes.at;
    if (nodes[from].bytes != t->bytes) return ONV_JOINT_NONE;
    uint32_t view = nodes[from].last_view;
    for (uint32_t n = 0; view != 0 && n < MAX_VIEWS; n++, view = nodes[view - 1].next_view)
        if (same_view(b, &nodes[view - 1], t)) return view - 1;
    return ONV_JOINT_NONE;
}

static void add_view(builder *b, uint32_t from, uint32_t out)
{
    const onv_eager_tensor *t = tensor_at(b, out);
    uint32_t node = find_view(b, from, t);
    if (node == ONV_JOINT_NONE) {
        node = add_node(b, ONV_JOINT_VIEW, false, t->bytes, &from, 1);
        if (b->failed) return;
        b->joint->nodes.at[node].next_view = b->joint->nodes.at[from].last_view;
        b->joint->nodes.at[from].last_view = node + 1;
    }
    set_node(b, out, node);
}

static void add_views(builder *b)
{
    const onv_eager_op *op = b->op;
    uint32_t from = b->node_of[op->in[0].tensor];
    if (from == ONV_JOINT_NONE) return;
    if (op->n_out == 1) {
        add_view(b, from, op->out[0]);
        return;
    }
    uint64_t bytes = b->joint->nodes.at[from].bytes;
    uint32_t parts = add_node(b, ONV_JOINT_VIEW, true, bytes, &from, 1);
    for (uint32_t k = 0; k < op->n_out && !b->failed; k++) {
        uint32_t part =
            add_node(b, ONV_JOINT_PART, false, tensor_at(b, op->out[k])->bytes, &parts, 1);
        if (b->failed) return;
        b->joint->nodes.at[part].base = b->joint->nodes.at[from].base;
        set_node(b, op->out[k], part);
    }
}

static bool is_view(const builder *b, const onv_eager_op *op)
{
    return op->n_in > 0 && op->n_out > 0 && !op->in_place &&
           tensor_at(b, op->in[0].tensor)->storage == tensor_at(b, op->out[0])->storage;
}

/* --- Recipes ----------------------------------------------------------------------------------- */

/* The nth storage that the tape's operation makes for its backward; SIZE_MAX: there is none. */
static uint64_t extra_bytes(const builder *b, uint32_t nth)
{
    for (uint32_t k = 0; k < b->op->n_saved; k++) {
        const onv_eager_storage *storage = &b->eager->storages.at[b->op->saved[k]];
        if (storage->kind == ONV_STORAGE_EXTRA && nth-- == 0) return storage->bytes;
    }
    return UINT64_MAX;
}

/* Statistics that the tape's operation keeps; else one value for each row of the result. */
static uint64_t row_bytes(const builder *b)
{
    const onv_eager_tensor *out = tensor_at(b, b->op->out[0]);
    uint64_t kept = extra_bytes(b, 0);
    if (kept != UINT64_MAX) return kept;
    int64_t last = out->rank > 0 ? out->dims[out->rank - 1] : 1;
    return last > 0 ? out->bytes / (uint64_t)last : 0;
}

/* Of all results, those for backward alone too. */
static uint64_t result_bytes(const builder *b)
{
    uint64_t all = 0, extra;
    for (uint32_t k = 0; k < b->op->n_out; k++)
        all = onv_u64_plus(all, tensor_at(b, b->op->out[k])->bytes);
    for (uint32_t k = 0; (extra = extra_bytes(b, k)) != UINT64_MAX; k++)
        all = onv_u64_plus(all, extra);
    return all;
}

static uint64_t size_of(const builder *b, char letter)
{
    const onv_eager_op *op = b->op;
    const onv_eager_tensor *out = tensor_at(b, op->out[0]);
    const onv_eager_tensor *x = op->n_in > 0 ? tensor_at(b, op->in[0].tensor) : out;
    switch (letter) {
    case 'o': return out->bytes;
    case 'x': return x->bytes;
    case 'y': return op->n_in > 1 ? tensor_at(b, op->in[1].tensor)->bytes : x->bytes;
    case 'a': return result_bytes(b);
    case 'r': return row_bytes(b);
    case 'R': return onv_u64_times(row_bytes(b), 2);
    case '0':
    case '1':
    case '2': return extra_bytes(b, (uint32_t)(letter - '0'));
    case 'b': return out->elems;
    case 'q': return onv_u64_plus(out->bytes, out->elems);
    case 'm': return x->elems;
    case 'f': return onv_u64_times(out->elems, sizeof(float));
    case 'i': return onv_u64_times(out->elems, sizeof(int64_t));
    default: return sizeof(int64_t);
    }
}

static onv_joint_kind kind_of(char letter)
{
    switch (letter) {
    case 'v': return ONV_JOINT_VIEW;
    case 'g': return ONV_JOINT_PART;
    case 'c':
    case 'C': return ONV_JOINT_COMPUTE;
    case 'k': return ONV_JOINT_CAT;
    case 'n':
    case 'N': return ONV_JOINT_OTHER;
    default: return ONV_JOINT_POINTWISE;
    }
}

enum { MAX_ARGS = 8 };

typedef struct arguments {
    uint32_t at[MAX_ARGS]; /* those that are there */
    uint32_t found, named;
} arguments;

/* "(x,m)" */
static const char *parse_args(const builder *b, const char *text, arguments *args)
{
    *args = (arguments){0};
    for (text++; *text != ')'; text++) {
        if (*text == ',') continue;
        uint32_t node = b->var[(unsigned char)*text & 127];
        if (node != ONV_JOINT_NONE && args->found < MAX_ARGS) args->at[args->found++] = node;
        args->named++;
    }
    return text + 1;
}

/* "!p0(y)": backward reads y, if it gives input 0 a gradient. */
static const char *run_read(builder *b, const char *text)
{
    arguments args;
    const onv_eager_op *op = b->op;
    bool fused = text[1] == 'p', wanted = true;
    text += 2;
    if (*text != '(') {
        uint32_t of = (uint32_t)(*text++ - '0');
        wanted = of < op->n_in && op->in[of].grad != ONV_GRAD_NONE &&
                 tensor_at(b, op->in[of].tensor)->needs_grad;
    }
    text = parse_args(b, text, &args);
    for (uint32_t i = 0; i < args.found && wanted; i++) read_node(b, args.at[i], fused);
    return text;
}

/* "d=po(x,m)"; ">pr(m)": a result that stays. */
static const char *run_statement(builder *b, const char *text)
{
    arguments args;
    bool stays = *text == '>';
    unsigned char to = (unsigned char)*text & 127;
    text += stays ? 1 : 2;
    char kind = text[0], size = text[1];
    text = parse_args(b, text + 2, &args);
    uint32_t node = ONV_JOINT_NONE;
    bool missing = args.found < args.named;
    if (missing && args.found == 1 && args.named == 2 && kind == 'p') {
        node = args.at[0]; /* its other operand is not there: it is no operation */
    } else if (args.found > 0 || args.named == 0) {
        bool is_tuple = kind == 'P' || kind == 'C' || kind == 'N';
        node = add_node(b, kind_of(kind), is_tuple, size_of(b, size), args.at, args.found);
    }
    if (!stays)
        b->var[to] = node;
    else if (node != ONV_JOINT_NONE)
        b->joint->nodes.at[node].is_output = true;
    return text;
}

static void run(builder *b, const char *text)
{
    while (*text != '\0' && !b->failed) {
        if (*text == ' ')
            text++;
        else if (*text == '!')
            text = run_read(b, text);
        else
            text = run_statement(b, text);
    }
}

static void bind_inputs(builder *b)
{
    static const char names[] = "xyzw";
    for (uint32_t i = 0; i < 128; i++) b->var[i] = ONV_JOINT_NONE;
    for (uint32_t k = 0; k < b->op->n_in && names[k] != '\0'; k++)
        b->var[(unsigned char)names[k]] = b->node_of[b->op->in[k].tensor];
}

/* --- Operations -------------------------------------------------------------------------------- */

static bool gives_grads(const builder *b)
{
    if (!b->op->has_backward) return false;
    for (uint32_t k = 0; k < b->op->n_out; k++)
        if (b->has_grad[b->op->out[k]]) return true;
    return false;
}

/* The operand or result that lies in this storage. */
static uint32_t find_saved(const builder *b, uint32_t storage)
{
    const onv_eager_op *op = b->op;
    for (uint32_t k = 0; k < op->n_out && op->in_place; k++)
        if (tensor_at(b, op->out[k])->storage == storage) return b->node_of[op->out[k]];
    for (uint32_t k = 0; k < op->n_in; k++)
        if (tensor_at(b, op->in[k].tensor)->storage == storage) return b->node_of[op->in[k].tensor];
    for (uint32_t k = 0; k < op->n_out; k++)
        if (tensor_at(b, op->out[k])->storage == storage) return b->node_of[op->out[k]];
    return ONV_JOINT_NONE;
}

/* What has no recipe of its own reads in backward what the tape's operation keeps. */
static void add_plain(builder *b, onv_joint_kind kind)
{
    const onv_eager_op *op = b->op;
    uint32_t node = add_node(b, kind, op->n_out > 1 || extra_bytes(b, 0) != UINT64_MAX,
                             result_bytes(b), NULL, 0);
    if (b->failed) return;
    for (uint32_t k = 0; k < op->n_in; k++) {
        uint32_t in = b->node_of[op->in[k].tensor];
        if (in == ONV_JOINT_NONE) continue;
        if (!onv_vec_push(&b->joint->ins, in)) b->failed = true;
        b->joint->nodes.at[node].n_in++;
    }
    bool is_tuple = b->joint->nodes.at[node].is_tuple, reads = gives_grads(b);
    for (uint32_t k = 0; k < op->n_out && !b->failed; k++) {
        uint64_t bytes = tensor_at(b, op->out[k])->bytes;
        set_node(b, op->out[k],
                 is_tuple ? add_node(b, ONV_JOINT_PART, false, bytes, &node, 1) : node);
    }
    for (uint32_t k = 0; k < op->n_saved && !b->failed && reads; k++) {
        const onv_eager_storage *storage = &b->eager->storages.at[op->saved[k]];
        uint32_t kept = storage->kind == ONV_STORAGE_EXTRA
                            ? add_node(b, ONV_JOINT_PART, false, storage->bytes, &node, 1)
                            : find_saved(b, op->saved[k]);
        read_node(b, kept, kind == ONV_JOINT_POINTWISE);
    }
}

static void add_by_recipe(builder *b, const char *recipe)
{
    uint32_t before = (uint32_t)b->joint->nodes.count;
    bind_inputs(b);
    run(b, recipe);
    if (b->failed) return;
    uint32_t out = b->var['o'];
    set_node(b, b->op->out[0], out);
    for (uint32_t i = before; i < b->joint->nodes.count; i++)
        if (b->joint->nodes.at[i].kind == ONV_JOINT_COMPUTE)
            b->joint->nodes.at[i].macs = b->op->macs;
    if (gives_grads(b)) run(b, onv_aten_next_text(recipe));
}

/* Rows of a trained table are looked up by a kernel of its own, other elements by a pointwise one; the
 * backward of pooling in three dims is a kernel. */
static const onv_aten_op *row_of(const builder *b)
{
    enum { VOLUME = 5 };
    const onv_eager_op *op = b->op;
    onv_aten_id id = (onv_aten_id)op->aten;
    bool looks_up = id == ONV_ATEN_index_select;
    bool is_table = looks_up && op->n_in > 0 && tensor_at(b, op->in[0].tensor)->is_leaf;
    bool is_volume = id == ONV_ATEN_max_pool && tensor_at(b, op->out[0])->rank == VOLUME;
    if (looks_up) id = is_table ? ONV_ATEN_embedding : ONV_ATEN_index;
    return &onv_aten_ops[is_volume ? ONV_ATEN_max_pool3d : id];
}

/* A copy in eager PyTorch, which Inductor takes out: windows that fit the image need no padding. */
static bool pads_nothing(const builder *b, const onv_eager_op *op)
{
    if (op->n_in == 0 || op->aten != ONV_ATEN_pad) return false;
    const onv_eager_tensor *x = tensor_at(b, op->in[0].tensor), *out = tensor_at(b, op->out[0]);
    return x->rank == out->rank && memcmp(x->dims, out->dims, x->rank * sizeof x->dims[0]) == 0;
}

/* Each call of attention makes a float mask of the boolean one that it is given: one for all, after AOTAutograd's elimination
 * of common subexpressions. */
static bool repeats_mask(builder *b, const onv_eager_op *op)
{
    bool makes = op->aten == ONV_ATEN_where && op->n_in == 1 && op->n_out == 1;
    if (!makes || tensor_at(b, op->out[0])->needs_grad) return false;
    uint32_t first = b->n_masks > MAX_MASKS ? b->n_masks - MAX_MASKS : 0;
    const onv_eager_tensor *out = tensor_at(b, op->out[0]);
    for (uint32_t i = b->n_masks; i-- > first;) {
        const onv_eager_op *other = &b->eager->ops.at[b->masks[i % MAX_MASKS]];
        uint32_t made = b->node_of[other->out[0]];
        if (made == ONV_JOINT_NONE || !same_view(b, &b->joint->nodes.at[made], out) ||
            b->node_of[other->in[0].tensor] != b->node_of[op->in[0].tensor])
            continue;
        set_node(b, op->out[0], made);
        return true;
    }
    b->masks[b->n_masks++ % MAX_MASKS] = b->op_index;
    return false;
}

static void add_op(builder *b)
{
    const onv_eager_op *op = b->op;
    if (op->n_out == 0) return;
    if (pads_nothing(b, op)) {
        set_node(b, op->out[0], b->node_of[op->in[0].tensor]);
        return;
    }
    if (is_view(b, op)) {
        add_views(b);
        return;
    }
    if (repeats_mask(b, op)) return;
    const onv_aten_op *row = row_of(b);
    if (op->aten == ONV_ATEN_cat) {
        add_plain(b, ONV_JOINT_CAT);
    } else if (row->recipe != NULL) {
        add_by_recipe(b, row->recipe);
    } else if (onv_aten_is_compiled(row)) {
        add_plain(b, ONV_JOINT_POINTWISE);
    } else {
        if (b->joint->n_unknown++ == 0) b->joint->unknown = op->name;
        add_plain(b, ONV_JOINT_OTHER);
    }
}

/* --- The whole graph --------------------------------------------------------------------------- */

/* Which tensors backward gives gradients, from the results of the network on. */
static void find_grads(builder *b)
{
    const onv_eager *e = b->eager;
    for (uint32_t i = e->first_loss_op; i < e->ops.count; i++)
        for (uint32_t k = 0; k < e->ops.at[i].n_in; k++)
            if (e->ops.at[i].in[k].grad != ONV_GRAD_NONE)
                b->has_grad[e->ops.at[i].in[k].tensor] = true;
    for (size_t i = 0; i < e->outputs.count; i++) b->has_grad[e->outputs.at[i]] = true;
    for (uint32_t i = e->first_loss_op; i-- > 0;) {
        const onv_eager_op *op = &e->ops.at[i];
        bool any = false;
        for (uint32_t k = 0; k < op->n_out; k++) any |= b->has_grad[op->out[k]];
        for (uint32_t k = 0; k < op->n_in && any && op->has_backward; k++)
            if (op->in[k].grad != ONV_GRAD_NONE) b->has_grad[op->in[k].tensor] = true;
    }
}

/* Results of the network, and what the loss reads. */
static void mark_outputs(builder *b)
{
    const onv_eager *e = b->eager;
    for (uint32_t i = 0; i < e->tensors.count; i++) {
        uint32_t node = b->node_of[i];
        bool is_output = e->storages.at[e->tensors.at[i].storage].is_output;
        if (node != ONV_JOINT_NONE && b->is_made[i] && is_output)
            b->joint->nodes.at[node].is_output = true;
    }
    for (uint32_t i = e->first_loss_op; i < e->ops.count; i++)
        for (uint32_t k = 0; k < e->ops.at[i].n_in; k++) {
            uint32_t node = b->node_of[e->ops.at[i].in[k].tensor];
            if (node != ONV_JOINT_NONE) b->joint->nodes.at[node].is_output = true;
        }
}

onv_status onv_joint_make(const onv_eager *eager, onv_arena *arena, onv_joint *joint,
                          onv_error *err)
{
    size_t n = eager->tensors.count;
    *joint = (onv_joint){0};
    builder b = {.eager = eager, .joint = joint, .op_index = ONV_JOINT_NONE};
    b.node_of = ONV_ARENA_ARRAY(arena, uint32_t, n);
    b.has_grad = ONV_ARENA_ARRAY(arena, bool, n);
    b.is_made = ONV_ARENA_ARRAY(arena, bool, n);
    bool *is_read = ONV_ARENA_ARRAY(arena, bool, eager->storages.count);
    if (arena->failed) return onv_fail_memory(err);
    for (size_t i = 0; i < eager->ops.count; i++)
        for (uint32_t k = 0; k < eager->ops.at[i].n_out; k++)
            b.is_made[eager->ops.at[i].out[k]] = true;
    find_grads(&b);
    add_primals(&b, is_read);
    for (uint32_t i = 0; i < eager->first_loss_op && !b.failed; i++) {
        b.op = &eager->ops.at[i];
        b.op_index = i;
        add_op(&b);
    }
    if (b.failed) return onv_fail_memory(err);
    mark_outputs(&b);
    return ONV_OK;
}

void onv_joint_cleanup(onv_joint *joint)
{
    onv_vec_cleanup(&joint->nodes);
    onv_vec_cleanup(&joint->ins);
    onv_vec_cleanup(&joint->reads);
}
