#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "base/strings.h"
#include "graph/storage.h"
#include "ort/planner.h"
#include "ort/scratch.h"

/* --- Kernels ----------------------------------------------------------------------------------- */

enum sharing { OWN, INPLACE, ALIAS };
enum { SUMMAND = 3 }; /* of a convolution: the input that it adds to */

/* What output 0 makes of an input, mostly the first. Measured, ONNX Runtime 1.31, one operator at a time: in a chain of one
 * operator the pattern has one buffer where it shares and two where it does not. CUDA: by its build over a
 * substitute for the driver. Not measured: CastLike and Shrink on CUDA, the fused operators and ScatterND
 * on the CPU. */
enum { MOST_ALIKE = 12 };

static const struct alike {
    uint8_t cuda, cpu;
    bool is_fused;            /* of com.microsoft */
    uint16_t ops[MOST_ALIKE]; /* onv_op_name; ONV_OP_OTHER: no more */
} kernels[] = {
    {ALIAS,
     ALIAS,
     false,
     {ONV_OP_Identity, ONV_OP_Reshape, ONV_OP_Flatten, ONV_OP_Squeeze, ONV_OP_Unsqueeze}},
    {INPLACE,
     INPLACE,
     false,
     {ONV_OP_Relu, ONV_OP_LeakyRelu, ONV_OP_Elu, ONV_OP_Selu, ONV_OP_Sigmoid, ONV_OP_HardSigmoid,
      ONV_OP_Tanh, ONV_OP_Softplus, ONV_OP_Softsign, ONV_OP_ThresholdedRelu, ONV_OP_Trilu}},
    {OWN,
     INPLACE,
     false,
     {ONV_OP_Celu, ONV_OP_Shrink, ONV_OP_Softmax, ONV_OP_LogSoftmax, ONV_OP_Clip, ONV_OP_Cast,
      ONV_OP_CastLike, ONV_OP_ScatterElements}},
    {INPLACE, OWN, false, {ONV_OP_HardSwish, ONV_OP_ScatterND, ONV_OP_Gelu}},
    {INPLACE, OWN, true, {ONV_OP_Gelu, ONV_OP_QuickGelu}},
    {OWN, INPLACE, true, {ONV_OP_FusedConv}},
};

static enum sharing kernel_sharing(const onv_ort_planner *p, const onv_node *node)
{
    bool is_fused = strcmp(node->domain, "com.microsoft") == 0;
    if (strcmp(node->domain, "com.microsoft.nchwc") == 0)
        return node->code == ONV_OP_Conv && node->n_inputs > SUMMAND ? INPLACE : OWN;
    if (node->domain[0] != '\0' && !is_fused) return OWN;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        for (int k = 0; k < MOST_ALIKE && kernels[i].is_fused == is_fused; k++)
            if (node->code == kernels[i].ops[k] && node->code != ONV_OP_OTHER)
                return p->provider == ONV_ORT_CUDA ? kernels[i].cuda : kernels[i].cpu;
    return OWN;
}

/* --- Shapes ------------------------------------------------------------------------------------ */

/* What ONNX Runtime knows of a shape: numbers, and symbols by their names. */
static const onv_type *known_type(const onv_ort_planner *p, onv_value_id id)
{
    return p->session->seen != NULL ? &p->session->seen[id.index]
                                    : &onv_model_value(p->model, id)->type;
}

bool onv_ort_is_known(const onv_ort_planner *p, onv_value_id id)
{
    const onv_type *type = known_type(p, id);
    if (type->kind != ONV_TYPE_TENSOR || !onv_type_has_rank(type)) return false;
    for (int i = 0; i < type->rank; i++)
        if (!onv_dim_is_known(type->dims[i])) return false;
    return true;
}

/* Equal element size and equal shape dim by dim: an equal number of bytes is not enough. */
static bool same_size(const onv_ort_planner *p, onv_value_id a, onv_value_id b)
{
    if (!onv_ort_is_known(p, a) || !onv_ort_is_known(p, b)) return false;
    const onv_type *x = known_type(p, a), *y = known_type(p, b);
    uint32_t bits = onv_dtype_bits((onv_dtype)x->dtype);
    if (x->rank != y->rank || bits == 0 || bits != onv_dtype_bits((onv_dtype)y->dtype))
        return false;
    for (int i = 0; i < x->rank; i++)
        if (!onv_dim_same(x->dims[i], y->dims[i])) return false;
    return true;
}

/* --- What may be used again -------------------------------------------------------------------- */

static uint32_t hash_of(const onv_ort_planner *p, onv_value_id id, onv_graph_id graph)
{
    const onv_type *type = known_type(p, id);
    uint64_t kind = (uint64_t)type->rank << 8 | (uint64_t)onv_dtype_bits((onv_dtype)type->dtype);
    uint64_t seed = onv_hash_word((uint64_t)graph.index << 32 | kind);
    return (uint32_t)onv_hash_bytes(type->dims, (size_t)type->rank * sizeof *type->dims, seed);
}

/* Those that fit the value's shape in that graph; NULL: none ever do. */
static onv_ort_freed *find_freed(onv_ort_planner *p, onv_value_id id, onv_graph_id graph)
{
    if (!onv_ort_is_known(p, id) || onv_dtype_bits((onv_dtype)known_type(p, id)->dtype) == 0)
        return NULL;
    uint32_t hash = hash_of(p, id, graph) | 1;
    size_t at = hash >> 1 & p->freed_mask;
    for (; p->freed[at].hash != 0; at = (at + 1) & p->freed_mask) {
        onv_ort_freed *slot = &p->freed[at];
        if (slot->hash == hash && slot->graph.index == graph.index && same_size(p, slot->shape, id))
            return slot;
    }
    p->freed[at] = (onv_ort_freed){id, graph, hash, NONE};
    return &p->freed[at];
}

static void free_buffer(onv_ort_planner *p, uint32_t b)
{
    onv_ort_freed *slot = find_freed(p, p->state[b].shape, p->plan->graph_of[b]);
    if (slot == NULL) return;
    p->freed_before[b] = slot->newest;
    slot->newest = b;
}

/* --- Buffers ----------------------------------------------------------------------------------- */

void onv_ort_take(onv_ort_planner *p, const onv_buffer *row, uint32_t b)
{
    onv_buffer *to = &p->plan->buffers[b];
    if (row->last > to->last) to->last = row->last;
    p->state[b].is_free = false;
    p->state[b].is_read |= p->uses[row->value.index] > 0;
    p->state[b].users_left += p->uses[row->value.index];
    p->plan->of_value[row->value.index] = b;
}

static void add_choice(onv_ort_plan *plan, uint32_t b, uint64_t least, uint64_t most)
{
    plan->open_sizes[plan->n_open_sizes++] =
        (onv_ort_open_size){b, {plan->buffers[b].bytes, least, most}};
}

/* Of a size that the data decides: as few bytes as it may have. Where that is not known, none. */
static uint64_t least_bytes(const onv_ort_planner *p, const onv_buffer *row)
{
    onv_dims *dims = &p->model->dims;
    const onv_type *type = &onv_model_value(p->model, row->value)->type;
    onv_dim elems = onv_dim_lower(dims, onv_type_elems(dims, type));
    uint64_t bytes;
    if (onv_type_is_static(type) || elems.raw < 0 ||
        !onv_dtype_bytes((onv_dtype)type->dtype, (uint64_t)elems.raw, &bytes))
        return 0;
    return bytes < row->bytes ? bytes : row->bytes;
}

/* What liveness says of shared memory goes: here it is planned. */
uint32_t onv_ort_add_buffer(onv_ort_planner *p, const onv_buffer *row, onv_graph_id graph,
                            onv_ort_life life)
{
    uint32_t b = p->plan->count++;
    p->plan->buffers[b] = *row;
    p->plan->buffers[b].becomes = p->plan->buffers[b].within = ONV_NO_BUFFER;
    p->plan->life[b] = (uint8_t)life;
    p->plan->graph_of[b] = graph;
    p->state[b] = (onv_ort_buffer_state){.shape = row->value};
    if (row->bound && row->sized) add_choice(p->plan, b, least_bytes(p, row), row->bytes);
    return b;
}

static void new_buffer(onv_ort_planner *p, const onv_buffer *row)
{
    const onv_value *value = onv_model_value(p->model, row->value);
    bool is_traced = !value->is_output && value->type.kind == ONV_TYPE_TENSOR;
    onv_ort_life life = is_traced ? ONV_ORT_PLANNED : ONV_ORT_FETCHED;
    onv_ort_take(p, row, onv_ort_add_buffer(p, row, value->graph, life));
}

static bool is_own(const onv_ort_planner *p, uint32_t b)
{
    return p->plan->buffers[b].kind == ONV_BUFFER_ACTIVATION && p->plan->life[b] == ONV_ORT_PLANNED;
}

/* Rules 2 and 3: true where the output needs no new buffer; *b stays NONE where what it shares is
 * not counted (a weight, the caller's input). */
static bool share_input(const onv_ort_planner *p, const onv_node *node, const onv_buffer *row,
                        uint32_t *b)
{
    enum sharing how = kernel_sharing(p, node);
    uint32_t k = ONV_IS_ANY(node, ONV_OP_Conv, ONV_OP_FusedConv) ? SUMMAND : 0;
    *b = NONE;
    if (how == OWN || node->n_inputs <= k || !onv_is_value(node->inputs[k])) return false;
    onv_value_id in = node->inputs[k];
    *b = p->plan->of_value[in.index];
    if (how == ALIAS) return true;
    return *b != NONE && is_own(p, *b) && p->state[*b].users_left == 1 &&
           p->plan->graph_of[*b].index == node->graph.index && same_size(p, in, row->value);
}

/* Rule 4; scalars never take part. */
static uint32_t reuse_freed(onv_ort_planner *p, const onv_buffer *row)
{
    const onv_value *value = onv_model_value(p->model, row->value);
    if (value->type.rank == 0 || !p->plan->settings->enable_mem_reuse) return NONE;
    onv_ort_freed *slot = find_freed(p, row->value, value->graph);
    uint32_t b = slot != NULL ? slot->newest : NONE;
    if (b != NONE) slot->newest = p->freed_before[b];
    return b;
}

void onv_ort_place_output(onv_ort_planner *p, const onv_node *node, const onv_buffer *row)
{
    const onv_value *value = onv_model_value(p->model, row->value);
    if (p->is_placed[row->value.index]) return;
    p->is_placed[row->value.index] = true;
    if (p->is_host[row->value.index]) return;
    if (value->is_output && value->graph.index != 0) {
        onv_ort_place_result(p, row);
        return;
    }
    if (value->is_output) {
        if (!p->plan->settings->io_binding) new_buffer(p, row);
        return;
    }
    /* Measured (ONNX Runtime 1.31): an output without a reader takes no freed buffer. */
    uint32_t b = NONE;
    bool shares = value->output_index == 0 && share_input(p, node, row, &b);
    if (!shares && p->uses[row->value.index] > 0) b = reuse_freed(p, row);
    if (!shares && b == NONE) {
        new_buffer(p, row);
        return;
    }
    p->plan->reused++;
    if (b != NONE) onv_ort_take(p, row, b);
}

static void place_input(onv_ort_planner *p, const onv_buffer *row)
{
    bool is_callers = p->provider != ONV_ORT_CUDA || p->plan->settings->io_binding;
    if (is_callers && row->kind == ONV_BUFFER_INPUT) return;
    if (onv_model_value(p->model, row->value)->graph.index != 0) return; /* flow.c */
    if (p->model->has_providers && p->is_host[row->value.index]) return;
    new_buffer(p, row);
}

/* --- Releases ---------------------------------------------------------------------------------- */

/* What an inner graph reads of an outer one is in use until the owner of the inner one is done. */
static void release(onv_ort_planner *p, uint32_t b, uint32_t step)
{
    if (!is_own(p, b) || p->state[b].is_free) return;
    p->state[b].is_free = true;
    if (p->plan->buffers[b].last > step)
        p->waiting[p->n_waiting++] = b;
    else
        free_buffer(p, b);
}

static void release_after(onv_ort_planner *p, const onv_node *node, uint32_t step)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->n_waiting; i++) {
        if (p->plan->buffers[p->waiting[i]].last > step)
            p->waiting[kept++] = p->waiting[i];
        else
            free_buffer(p, p->waiting[i]);
    }
    p->n_waiting = kept;
    for (uint32_t k = 0; k < node->n_inputs + node->n_outputs; k++) {
        bool reads = k < node->n_inputs;
        onv_value_id id = reads ? node->inputs[k] : node->outputs[k - node->n_inputs];
        uint32_t b = onv_is_value(id) ? p->plan->of_value[id.index] : NONE;
        if (b != NONE && (p->state[b].users_left -= reads) == 0) release(p, b, step);
    }
}

/* What nobody reads is free to be used again, but if it is not, it stays until the run of its graph
 * is over. */
static void keep_unread(onv_ort_planner *p)
{
    for (uint32_t b = 0; b < p->plan->count; b++) {
        const onv_ort_graph *graph = &p->plan->graphs[p->plan->graph_of[b].index];
        if (!p->state[b].is_read && is_own(p, b) && graph->end > graph->first)
            p->plan->buffers[b].last = graph->end - 1;
    }
}

/* --- All together ------------------------------------------------------------------------------ */

static void count_uses(onv_ort_planner *p)
{
    for (uint32_t s = 0; s < p->live->timeline.steps.count; s++) {
        const onv_node *node = onv_model_node(p->model, p->live->timeline.steps.at[s].node);
        for (uint32_t k = 0; k < node->n_inputs; k++)
            if (onv_is_value(node->inputs[k])) p->uses[node->inputs[k].index]++;
    }
    for (size_t g = 0; g < p->model->graphs.count; g++) {
        const onv_graph *graph = &p->model->graphs.at[g];
        for (uint32_t i = 0; i < graph->n_outputs; i++) p->uses[graph->outputs[i].index]++;
    }
}

static onv_status prepare(onv_ort_planner *p, onv_error *err)
{
    onv_arena *arena = &p->scratch;
    size_t n_values = p->model->values.count, n_nodes = p->model->nodes.count;
    /* A value has a buffer at most, and three more where a Loop or Scan hands it on, copies or stacks it; a Loop has two. */
    bool has_flow = p->model->graphs.count > 1;
    size_t each = has_flow ? 4 : 1, n_open = n_nodes + each * (size_t)p->live->bounded;
    size_t n_buffers = each * n_values + (has_flow * 2 + ONV_ORT_MOST_SCRATCH) * n_nodes;
    p->uses = ONV_ARENA_ARRAY(arena, uint32_t, n_values);
    p->is_placed = ONV_ARENA_ARRAY(arena, bool, n_values);
    p->is_state = ONV_ARENA_ARRAY(arena, bool, n_values);
    p->is_stacked = ONV_ARENA_ARRAY(arena, bool, n_values);
    p->result_of = ONV_ARENA_ARRAY(arena, uint32_t, n_values);
    p->step_of = ONV_ARENA_ARRAY(arena, uint32_t, n_nodes);
    p->is_entered = ONV_ARENA_ARRAY(arena, bool, n_nodes);
    p->plan->graphs = ONV_ARENA_ARRAY(arena, onv_ort_graph, p->model->graphs.count);
    p->plan->n_graphs = (uint32_t)p->model->graphs.count;
    p->plan->of_value = ONV_ARENA_ARRAY(arena, uint32_t, n_values);
    p->plan->buffers = ONV_ARENA_ARRAY(arena, onv_buffer, n_buffers);
    p->plan->life = ONV_ARENA_ARRAY(arena, uint8_t, n_buffers);
    p->plan->graph_of = ONV_ARENA_ARRAY(arena, onv_graph_id, n_buffers);
    p->plan->open_sizes = ONV_ARENA_ARRAY(arena, onv_ort_open_size, n_open);
    while (p->freed_mask < 2 * n_values)
        p->freed_mask = 2 * p->freed_mask + 1; /* a slot for each */
    p->freed = ONV_ARENA_ARRAY(arena, onv_ort_freed, (size_t)p->freed_mask + 1);
    p->state = ONV_ARENA_ARRAY(arena, onv_ort_buffer_state, n_buffers);
    p->freed_before = ONV_ARENA_ARRAY(arena, uint32_t, n_buffers);
    p->waiting = ONV_ARENA_ARRAY(arena, uint32_t, n_buffers);
    if (arena->failed) return onv_fail_memory(err);
    memset(p->plan->of_value, 0xff, n_values * sizeof *p->plan->of_value);
    memset(p->result_of, 0xff, n_values * sizeof *p->result_of);
    if (p->provider != ONV_ORT_CPU)
        ONV_TRY(onv_mark_host_values(p->model, p->live, &p->is_host, err));
    for (size_t i = 0; p->provider == ONV_ORT_HOST && i < n_values; i++)
        p->is_host[i] = !p->is_host[i]; /* what is elsewhere */
    if (p->provider != ONV_ORT_CPU) return ONV_OK;
    p->is_host = ONV_ARENA_ARRAY(arena, bool, n_values);
    return p->is_host != NULL ? ONV_OK : onv_fail_memory(err);
}

/* What the kernel of a step takes for itself, before it makes its outputs or after. */
static void add_scratch(onv_ort_planner *p, const onv_node *node, uint32_t step,
                        const onv_ort_scratch *scratch, bool is_early)
{
    for (uint32_t i = 0; i < scratch->count; i++) {
        const onv_ort_scratch_row *row = &scratch->rows[i];
        if (row->is_early != is_early || (row->bytes == 0 && !row->is_uncertain)) continue;
        onv_buffer b = onv_buffer_new(ONV_BUFFER_WORKSPACE, row->bytes, step, step, node->op_type);
        b.is_transient = row->is_transient;
        if (row->has_no_stream) b.stream = ONV_ORT_NO_STREAM;
        uint32_t at = onv_ort_add_buffer(p, &b, node->graph, ONV_ORT_FETCHED);
        p->state[at].is_read = true;
        if (row->is_uncertain) add_choice(p->plan, at, row->least_bytes, row->most_bytes);
    }
}

bool onv_ort_plan_choose(onv_ort_plan *plan, onv_ort_choice choice)
{
    bool differs = plan->has_branches;
    plan->takes_least = choice == ONV_ORT_LEAST;
    for (uint32_t i = 0; i < plan->n_open_sizes; i++) {
        const uint64_t *bytes = plan->open_sizes[i].bytes;
        plan->buffers[plan->open_sizes[i].buffer].bytes = bytes[choice];
        differs |= bytes[choice] != bytes[ONV_ORT_LIKELY];
    }
    return differs;
}

static onv_status place_all(onv_ort_planner *p, onv_error *err)
{
    const onv_live *live = p->live;
    onv_ort_plan *plan = p->plan;
    ONV_TRY(prepare(p, err));
    count_uses(p);
    onv_ort_list_graphs(p);
    for (uint32_t g = 0; g < plan->n_graphs && p->provider == ONV_ORT_CPU; g++)
        plan->graphs[g].stream = 0; /* what is freed there may be anybody's at once */
    onv_ort_list_feeds(p);
    if (p->model->arena.failed || p->scratch.failed) return onv_fail_memory(err);
    uint32_t row = 0, region = 0;
    onv_ort_session of_kernels = *p->session;
    of_kernels.settings = plan->settings;
    for (uint32_t s = 0; s < live->timeline.steps.count; s++) {
        const onv_node *node = onv_model_node(p->model, live->timeline.steps.at[s].node);
        const onv_timeline *t = &live->timeline;
        ONV_WORK(1 + node->n_inputs + node->n_outputs + p->n_waiting);
        while (region < t->regions.count && t->regions.at[region].first <= s)
            onv_ort_enter(p, &t->regions.at[region++]);
        onv_ort_before_step(p, node, s);
        onv_ort_scratch scratch = {0};
        if (p->provider != ONV_ORT_HOST)
            onv_ort_find_scratch(p->model, node, p->is_host, &of_kernels, &scratch);
        bool is_early = true;
        for (; row < live->timeline.buffers.count && live->timeline.buffers.at[row].first == s;
             row++) {
            const onv_buffer *at = &live->timeline.buffers.at[row];
            const onv_value *value = onv_model_value(p->model, at->value);
            if (!onv_is_node(value->producer)) {
                place_input(p, at);
                continue;
            }
            if (is_early) add_scratch(p, node, s, &scratch, true);
            is_early = false;
            onv_ort_place_output(p, onv_model_node(p->model, value->producer), at);
        }
        if (is_early) add_scratch(p, node, s, &scratch, true);
        add_scratch(p, node, s, &scratch, false);
        release_after(p, node, s);
        if (p->scratch.failed) return onv_fail_memory(err);
    }
    keep_unread(p);
    return ONV_OK;
}

/* The plan in the model's arena: there was room for as many buffers as there might have been. */
static onv_status keep_plan(const onv_ort_planner *p, onv_error *err)
{
    onv_ort_plan *plan = p->plan;
    onv_arena *arena = &p->model->arena;
    size_t n = plan->count, n_values = p->model->values.count;
    plan->graphs = onv_arena_copy(arena, plan->graphs, plan->n_graphs * sizeof *plan->graphs);
    plan->of_value = onv_arena_copy(arena, plan->of_value, n_values * sizeof *plan->of_value);
    plan->buffers = onv_arena_copy(arena, plan->buffers, n * sizeof *plan->buffers);
    plan->life = onv_arena_copy(arena, plan->life, n * sizeof *plan->life);
    plan->graph_of = onv_arena_copy(arena, plan->graph_of, n * sizeof *plan->graph_of);
    plan->open_sizes =
        onv_arena_copy(arena, plan->open_sizes, plan->n_open_sizes * sizeof *plan->open_sizes);
    return arena->failed ? onv_fail_memory(err) : ONV_OK;
}

onv_status onv_ort_plan_compute(onv_model *model, const onv_live *live,
                                const onv_ort_session *session, onv_ort_plan *plan, onv_error *err)
{
    const onv_ort_settings *settings = session->settings;
    if (settings == NULL) settings = &onv_ort_settings_default;
    *plan = (onv_ort_plan){.live = live, .settings = settings};
    for (size_t i = 0; i < live->timeline.regions.count; i++)
        plan->has_branches |= live->timeline.regions.at[i].kind == ONV_REGION_ALTERNATIVES;
    onv_ort_planner p = {.model = model,
                         .live = live,
                         .session = session,
                         .provider = session->provider,
                         .plan = plan};
    onv_arena_init(&p.scratch, SIZE_MAX);
    onv_status status = place_all(&p, err);
    if (status == ONV_OK) status = keep_plan(&p, err);
    onv_arena_cleanup(&p.scratch);
    return status;
}
