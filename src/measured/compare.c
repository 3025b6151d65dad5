#include "measured/compare.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "ir/origin.h"

/* --- What a stack tells of an allocation ---------------------------------------------------------- */

typedef struct stack_hint {
    onv_measured_kind kind; /* ONV_MEASURED_OTHER: nothing */
    bool is_in_module;      /* it is of a call of a module */
    onv_snapshot_frame at;  /* the innermost function of Python; its name may be NULL */
} stack_hint;

static bool contains(const onv_pickled *text, const char *part)
{
    size_t n = strlen(part);
    if (text == NULL || text->type != ONV_PICKLED_TEXT) return false;
    for (size_t i = 0; i + n <= text->length; i++)
        if (memcmp(text->text + i, part, n) == 0) return true;
    return false;
}

static bool ends(const onv_pickled *text, const char *part)
{
    size_t n = strlen(part);
    return text != NULL && text->type == ONV_PICKLED_TEXT && text->length >= n &&
           memcmp(text->text + text->length - n, part, n) == 0;
}

enum { MOST_FRAMES = 256 };

/* Autograd runs backward on threads of its own, which have no frame of Python. */
static stack_hint read_stack(const onv_pickled *frames)
{
    stack_hint hint = {.kind = ONV_MEASURED_OTHER};
    onv_snapshot_frame frame;
    bool is_python = false;
    if (frames == NULL) return hint;
    for (uint32_t i = 0; i < MOST_FRAMES && onv_snapshot_frame_at(frames, i, &frame); i++) {
        if (!ends(frame.file, ".py")) continue;
        if (!is_python) hint.at = frame;
        is_python = true;
        hint.is_in_module |= onv_pickled_is_text(frame.name, "_call_impl");
        if (hint.kind != ONV_MEASURED_OTHER) continue;
        if (contains(frame.file, "/optim/"))
            hint.kind = onv_pickled_is_text(frame.name, "_init_group") ? ONV_MEASURED_OPTIMIZER
                                                                       : ONV_MEASURED_ACTIVATIONS;
        if (onv_pickled_is_text(frame.name, "_apply") && ends(frame.file, "nn/modules/module.py"))
            hint.kind = ONV_MEASURED_PARAMETERS;
    }
    if (!is_python) hint.kind = ONV_MEASURED_GRADIENTS;
    return hint;
}

/* "function file:line", or "backward"; NULL without memory. */
static const char *stack_text(const onv_pickled *frames, onv_arena *arena)
{
    stack_hint hint = read_stack(frames);
    const onv_pickled *name = hint.at.name, *file = hint.at.file;
    if (frames == NULL) return "before the history";
    if (file == NULL || name == NULL || name->type != ONV_PICKLED_TEXT) return "backward";
    uint32_t from = 0;
    for (uint32_t i = 0; i < file->length; i++)
        if (file->text[i] == '/' || file->text[i] == '\\') from = i + 1;
    return onv_arena_printf(arena, "%.*s %.*s:%" PRIu64,
                            (int)(name->length < 200 ? name->length : 200), name->text,
                            (int)(file->length - from < 200 ? file->length - from : 200),
                            file->text + from, hint.at.line);
}

/* --- Names of what a step runs; NULL without memory ---------------------------------------------------------------------------- */

static const char *step_text(const onv_kept_execution *kept, uint32_t step, onv_arena *arena)
{
    const onv_step *s = &kept->made.timeline.steps.at[step];
    bool trains = strcmp(kept->runtime, "train") == 0;
    const char *node = onv_kept_node(kept, s);
    return onv_arena_printf(arena, "%s%s%s%s%s", trains ? onv_phase_name((onv_phase)s->phase) : "",
                            trains ? " of " : "", onv_kept_op(kept, s), node[0] != '\0' ? " " : "",
                            node);
}

static const char *step_module(const onv_kept_execution *kept, uint32_t step, onv_arena *arena)
{
    const onv_step *s = &kept->made.timeline.steps.at[step];
    if (!onv_is_node(s->node)) return s->phase == ONV_PHASE_OPTIMIZER ? "(optimizer)" : "(loss)";
    onv_origin origin = onv_node_origin(kept->model, onv_model_node(kept->model, s->node));
    if (origin.path == NULL || origin.length == 0) return "";
    size_t skip = origin.path[0] == origin.separator;
    return onv_arena_strndup(arena, origin.path + skip, origin.length - skip);
}

static onv_measured_kind kind_of(const onv_buffer *b)
{
    switch ((onv_buffer_kind)b->kind) {
    case ONV_BUFFER_WEIGHT:
    case ONV_BUFFER_STATISTIC: return ONV_MEASURED_PARAMETERS;
    case ONV_BUFFER_GRADIENT: return ONV_MEASURED_GRADIENTS;
    case ONV_BUFFER_STATE: return ONV_MEASURED_OPTIMIZER;
    case ONV_BUFFER_INPUT: return ONV_MEASURED_INPUTS;
    case ONV_BUFFER_WORKSPACE: return ONV_MEASURED_WORKSPACES;
    default: return ONV_MEASURED_ACTIVATIONS;
    }
}

/* --- The comparison ------------------------------------------------------------------------------- */

/* What is less than this part of the peak is not told of where orders part. */
enum { UNIT = 512, PARTS_OF_NEWS = 1000 };

/* A buffer of the prediction at its peak, or a block of the measurement at its own. */
typedef struct entry {
    uint64_t bytes;
    uint32_t id;  /* of the buffer, or of the block */
    uint8_t kind; /* onv_measured_kind; of a block what its stack tells */
    bool is_paired;
} entry;

typedef ONV_VEC(entry) entries;

typedef struct compare {
    const onv_measured_request *request;
    const onv_kept_execution *kept;
    const onv_timeline *t;
    const onv_placement *p;
    const onv_snapshot *s;
    onv_measured *to;
    onv_arena *arena;
    size_t first_event, peak_event; /* of the iteration that is compared */
    onv_order_of predicted, measured;
    uint32_t *place_of;      /* by buffer: its place in `predicted`; ONV_NO_PARTNER: none */
    entries buffers, blocks; /* at the peaks, of those without a partner */
    onv_error *err;
} compare;

/* --- The prediction ---------------------------------------------------------------------------- */

static bool is_block(const compare *c, uint32_t buffer)
{
    const onv_buffer *b = &c->t->buffers.at[buffer];
    return b->within == ONV_NO_BUFFER && b->bytes > 0;
}

/* What the iteration allocates: not what is there all the time, and not the batch. */
static bool is_request(const compare *c, uint32_t buffer)
{
    const onv_buffer *b = &c->t->buffers.at[buffer];
    return is_block(c, buffer) && !onv_buffer_is_fixed(c->t, b) && b->kind != ONV_BUFFER_INPUT;
}

static bool is_in_iteration(const compare *c, uint32_t step)
{
    const onv_step *steps = c->t->steps.at;
    return step >= c->t->measured_from &&
           steps[step].iteration == steps[c->t->measured_from].iteration;
}

/* The event with the most in the iteration. */
static void find_peak(compare *c)
{
    uint64_t now = 0, most = 0;
    c->first_event = c->p->events.count;
    for (size_t i = 0; i < c->p->events.count; i++) {
        const onv_timeline_event *e = &c->p->events.at[i];
        uint64_t bytes = is_block(c, e->buffer) ? c->p->places.at[e->buffer].counted : 0;
        now += e->is_free ? -bytes : bytes;
        if (!is_in_iteration(c, e->step)) continue;
        if (i < c->first_event) c->first_event = i;
        if (now <= most) continue;
        most = now;
        c->peak_event = i;
    }
}

static onv_status list_predicted(compare *c)
{
    size_t n = c->t->buffers.count;
    c->place_of = ONV_ARENA_ARRAY(c->arena, uint32_t, n);
    c->predicted.at = ONV_ARENA_ARRAY(c->arena, onv_aligned, n);
    if (c->place_of == NULL || c->predicted.at == NULL) return onv_fail_memory(c->err);
    for (size_t i = 0; i < n; i++) c->place_of[i] = ONV_NO_PARTNER;
    ONV_WORK(c->p->events.count);
    for (size_t i = c->first_event; i < c->p->events.count; i++) {
        const onv_timeline_event *e = &c->p->events.at[i];
        const onv_buffer *b = &c->t->buffers.at[e->buffer];
        uint32_t *place = &c->place_of[e->buffer];
        if (!is_request(c, e->buffer)) continue;
        if (e->is_free && *place != ONV_NO_PARTNER) c->predicted.at[*place].freed = c->predicted.n;
        if (e->is_free || !is_in_iteration(c, e->step)) continue;
        *place = c->predicted.n;
        c->predicted.at[c->predicted.n++] =
            (onv_aligned){.units = (b->bytes + UNIT - 1) / UNIT,
                          .freed = ONV_NO_PARTNER,
                          .id = e->buffer,
                          .partner = ONV_NO_PARTNER,
                          .is_workspace = b->kind == ONV_BUFFER_WORKSPACE};
    }
    return ONV_OK;
}

/* Also looks for the first step of an optimizer. */
static onv_status list_measured(compare *c)
{
    uint32_t n = (uint32_t)c->s->requests.count;
    c->measured = (onv_order_of){ONV_ARENA_ARRAY(c->arena, onv_aligned, n), n};
    if (c->measured.at == NULL) return onv_fail_memory(c->err);
    for (uint32_t i = 0; i < n; i++) {
        const onv_snapshot_request *r = &c->s->requests.at[i];
        c->measured.at[i] = (onv_aligned){.units = (r->bytes + UNIT - 1) / UNIT,
                                          .freed = r->freed,
                                          .id = i,
                                          .partner = ONV_NO_PARTNER};
        c->to->makes_optimizer_state |= read_stack(r->frames).kind == ONV_MEASURED_OPTIMIZER;
        ONV_WORK(onv_pickled_count(r->frames));
    }
    return ONV_OK;
}

/* --- Where they part --------------------------------------------------------------------------- */

static onv_status name_step(const compare *c, uint32_t step, onv_measured_parting *to)
{
    const onv_step *s = &c->t->steps.at[step];
    to->found = true;
    to->step = step;
    to->phase = onv_phase_name((onv_phase)s->phase);
    to->operation = step_text(c->kept, step, c->arena);
    to->node = onv_kept_node(c->kept, s);
    to->module = step_module(c->kept, step, c->arena);
    return to->operation != NULL && to->module != NULL ? ONV_OK : onv_fail_memory(c->err);
}

static uint32_t step_at(const compare *c, uint32_t place)
{
    if (place >= c->predicted.n) place = c->predicted.n - 1;
    return c->t->buffers.at[c->predicted.at[place].id].first;
}

static bool is_news(const compare *c, uint64_t bytes)
{
    return bytes > c->s->allocated_peak / PARTS_OF_NEWS;
}

/* The prediction's, or the measurement's, or both, without a partner. */
static onv_status find_missing(const compare *c, uint32_t j, uint32_t i, bool lacks, bool adds,
                               onv_measured_parting *to)
{
    uint64_t predicted = lacks ? c->t->buffers.at[c->predicted.at[j].id].bytes : 0;
    uint64_t measured = adds ? c->s->requests.at[i].bytes : 0;
    if (!is_news(c, predicted) && !is_news(c, measured)) return ONV_OK;
    ONV_TRY(name_step(c, step_at(c, j), to));
    to->bytes = (onv_measured_pair){predicted, measured};
    if (adds) to->where = stack_text(c->s->requests.at[i].frames, c->arena);
    return adds && to->where == NULL ? onv_fail_memory(c->err) : ONV_OK;
}

/* Where a measured allocation is freed, in the order of the prediction: the next one that has a partner. */
static uint32_t freed_in_prediction(const compare *c, uint32_t i)
{
    uint32_t freed = c->measured.at[i].freed;
    while (freed < c->measured.n && c->measured.at[freed].partner == ONV_NO_PARTNER) freed++;
    return freed < c->measured.n ? c->measured.at[freed].partner : ONV_NO_PARTNER;
}

static onv_status find_lifetime(const compare *c, uint32_t j, onv_measured_parting *to)
{
    const onv_aligned *a = &c->predicted.at[j];
    uint32_t freed = freed_in_prediction(c, a->partner);
    uint64_t bytes = c->t->buffers.at[a->id].bytes;
    /* What outlives the iteration, or the history, is not told. */
    if (!is_news(c, bytes) || freed == ONV_NO_PARTNER || a->freed >= c->predicted.n || freed < j ||
        step_at(c, a->freed) == step_at(c, freed))
        return ONV_OK;
    ONV_TRY(name_step(c, step_at(c, j), to));
    to->is_lifetime = true;
    to->bytes = (onv_measured_pair){bytes, c->s->requests.at[a->partner].bytes};
    to->where = stack_text(c->s->requests.at[a->partner].frames, c->arena);
    to->predicted_until = step_text(c->kept, step_at(c, a->freed), c->arena);
    to->measured_until = step_text(c->kept, step_at(c, freed), c->arena);
    return to->where != NULL && to->predicted_until != NULL && to->measured_until != NULL
               ? ONV_OK
               : onv_fail_memory(c->err);
}

/* The modules' calls that stand right before the measured place, without a partner. */
static uint32_t go_to_first_call(const compare *c, uint32_t i)
{
    const onv_order_of *m = &c->measured;
    while (i > 0 && m->at[i - 1].partner == ONV_NO_PARTNER &&
           read_stack(c->s->requests.at[i - 1].frames).is_in_module)
        i--;
    return i;
}

static onv_status find_parting(const compare *c)
{
    const onv_order_of *p = &c->predicted, *m = &c->measured;
    onv_measured_parting *to = &c->to->parting;
    uint32_t i = 0, j = 0;
    while (i < m->n && m->at[i].partner == ONV_NO_PARTNER) i++;
    if (i == m->n) return ONV_OK; /* nothing is alike: there is no order to compare */
    /* The first ones may be those that differ. */
    i -= m->at[i].partner < i ? m->at[i].partner : i;
    i = go_to_first_call(c, i);
    while (j < p->n && i < m->n && !to->found) {
        bool lacks = p->at[j].partner == ONV_NO_PARTNER;
        bool adds = m->at[i].partner == ONV_NO_PARTNER;
        ONV_WORK(1);
        if (lacks || adds)
            ONV_TRY(find_missing(c, j, i, lacks, adds, to));
        else if (!p->at[j].is_workspace)
            ONV_TRY(find_lifetime(c, j, to));
        j += lacks || !adds;
        i += adds || !lacks;
    }
    return ONV_OK;
}

/* --- What is there at the peaks ---------------------------------------------------------------- */

static bool add(entries *to, uint64_t bytes, uint32_t id, onv_measured_kind kind)
{
    entry row = {.bytes = bytes, .id = id, .kind = (uint8_t)kind};
    return onv_vec_push(to, row);
}

static onv_status add_module(compare *c, const char *path, uint64_t predicted, uint64_t measured)
{
    onv_measured_module row = {path, {predicted, measured}};
    return path != NULL && onv_vec_push(&c->to->modules, row) ? ONV_OK : onv_fail_memory(c->err);
}

/* That of what makes it; of a parameter that of its name. */
static const char *module_of(const compare *c, uint32_t buffer)
{
    const onv_buffer *b = &c->t->buffers.at[buffer];
    onv_measured_kind kind = kind_of(b);
    if (kind == ONV_MEASURED_ACTIVATIONS || kind == ONV_MEASURED_WORKSPACES)
        return step_module(c->kept, b->first, c->arena);
    const char *dot = b->label != NULL ? strrchr(b->label, '.') : NULL;
    return dot != NULL ? onv_arena_strndup(c->arena, b->label, (size_t)(dot - b->label)) : "";
}

/* Buffers at the predicted peak: `is_there` by buffer. */
static onv_status list_buffers(compare *c, uint8_t *is_there)
{
    for (size_t i = 0; i <= c->peak_event && i < c->p->events.count; i++)
        is_there[c->p->events.at[i].buffer] = !c->p->events.at[i].is_free;
    for (uint32_t b = 0; b < c->t->buffers.count; b++) {
        const onv_buffer *buffer = &c->t->buffers.at[b];
        is_there[b] = is_there[b] && is_block(c, b);
        if (!is_there[b]) continue;
        onv_measured_kind kind = kind_of(buffer);
        c->to->kinds[kind].predicted_bytes += buffer->bytes;
        c->to->rounding.predicted_bytes += c->p->places.at[b].counted - buffer->bytes;
        ONV_TRY(add_module(c, module_of(c, b), buffer->bytes, 0));
        if (!add(&c->buffers, buffer->bytes, b, kind)) return onv_fail_memory(c->err);
    }
    return ONV_OK;
}

/* A block that is what the prediction has as a buffer. */
static onv_status take_as(compare *c, uint64_t bytes, uint32_t buffer)
{
    c->to->kinds[kind_of(&c->t->buffers.at[buffer])].measured_bytes += bytes;
    return add_module(c, module_of(c, buffer), 0, bytes);
}

/* Blocks at the measured peak; those with a partner in the order are what that is. */
static onv_status list_blocks(compare *c, uint8_t *is_there)
{
    for (uint32_t i = 0; i < c->s->live.count; i++) {
        const onv_snapshot_block *block = &c->s->live.at[i];
        uint32_t place = block->request < c->measured.n ? c->measured.at[block->request].partner
                                                        : ONV_NO_PARTNER;
        c->to->rounding.measured_bytes += block->counted - block->bytes;
        uint32_t buffer = place != ONV_NO_PARTNER ? c->predicted.at[place].id : ONV_NO_BUFFER;
        if (buffer != ONV_NO_BUFFER) {
            ONV_TRY(take_as(c, block->bytes, buffer));
            if (is_there[buffer] != 0) is_there[buffer] = 2; /* on both sides */
            if (is_there[buffer] == 2) continue;
        }
        stack_hint hint = read_stack(block->frames);
        onv_measured_kind kind = buffer == ONV_NO_BUFFER ? hint.kind : ONV_N_MEASURED_KINDS;
        if (!add(&c->blocks, block->bytes, i, kind)) return onv_fail_memory(c->err);
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->buffers.count; i++)
        if (is_there[c->buffers.at[i].id] == 1) c->buffers.at[kept++] = c->buffers.at[i];
    c->buffers.count = kept;
    return ONV_OK;
}

/* --- By sizes ---------------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Both lists are sorted alike. First those whose stacks tell a kind, then all others. */
static onv_status pair_by_size(compare *c, bool any)
{
    ONV_WORK(c->blocks.count + c->buffers.count);
    for (uint32_t i = 0, j = 0; i < c->blocks.count && j < c->buffers.count;) {
        entry *block = &c->blocks.at[i], *buffer = &c->buffers.at[j];
        bool is_spent = block->is_paired || block->kind == ONV_N_MEASURED_KINDS;
        bool goes_first = block->bytes > buffer->bytes ||
                          (!any && block->bytes == buffer->bytes && block->kind < buffer->kind);
        if (is_spent || goes_first) {
            i++;
        } else if (buffer->is_paired || block->bytes < buffer->bytes ||
                   (!any && block->kind > buffer->kind)) {
            j++;
        } else {
            block->is_paired = buffer->is_paired = true;
            ONV_TRY(take_as(c, block->bytes, buffer->id));
            i++, j++;
        }
    }
    return ONV_OK;
}

static onv_status list_single(compare *c, const entry *e, bool is_measured)
{
    onv_measured_single row = {.bytes = e->bytes};
    if (is_measured) {
        const onv_snapshot_block *block = &c->s->live.at[e->id];
        row.what = e->kind < ONV_N_MEASURED_KINDS
                       ? onv_measured_kind_name((onv_measured_kind)e->kind)
                       : "lives longer than predicted";
        row.where = stack_text(block->frames, c->arena);
        if (e->kind < ONV_N_MEASURED_KINDS) c->to->kinds[e->kind].measured_bytes += e->bytes;
        if (e->kind < ONV_N_MEASURED_KINDS) ONV_TRY(add_module(c, "(no partner)", 0, e->bytes));
    } else {
        const onv_buffer *b = &c->t->buffers.at[e->id];
        row.what = b->label != NULL ? b->label : onv_buffer_kind_name((onv_buffer_kind)b->kind);
        row.where = step_text(c->kept, b->first, c->arena);
    }
    bool is_kept = row.where != NULL && (is_measured ? onv_vec_push(&c->to->only_measured, row)
                                                     : onv_vec_push(&c->to->only_predicted, row));
    return is_kept ? ONV_OK : onv_fail_memory(c->err);
}

static onv_status list_singles(compare *c)
{
    for (uint32_t i = 0; i < c->blocks.count; i++)
        if (!c->blocks.at[i].is_paired) ONV_TRY(list_single(c, &c->blocks.at[i], true));
    for (uint32_t i = 0; i < c->buffers.count; i++)
        if (!c->buffers.at[i].is_paired) ONV_TRY(list_single(c, &c->buffers.at[i], false));
    return ONV_OK;
}

/* --- Modules ----------------------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const onv_measured_module *)a)->path, ((const onv_measured_module *)b)->path);
}

static uint64_t apart(const onv_measured_module *m)
{
    return m->bytes.predicted_bytes > m->bytes.measured_bytes
               ? m->bytes.predicted_bytes - m->bytes.measured_bytes
               : m->bytes.measured_bytes - m->bytes.predicted_bytes;
}

static int by_difference(const void *a, const void *b)
{
    uint64_t x = apart(a), y = apart(b);
    return x != y ? (x > y ? -1 : 1) : by_path(a, b);
}

static void sum_modules(onv_measured *to)
{
    size_t n = 0;
    if (to->modules.count == 0) return;
    qsort(to->modules.at, to->modules.count, sizeof *to->modules.at, by_path);
    for (size_t i = 0; i < to->modules.count; i++) {
        onv_measured_module *row = &to->modules.at[i];
        if (n > 0 && strcmp(to->modules.at[n - 1].path, row->path) == 0) {
            to->modules.at[n - 1].bytes.predicted_bytes += row->bytes.predicted_bytes;
            to->modules.at[n - 1].bytes.measured_bytes += row->bytes.measured_bytes;
        } else {
            to->modules.at[n++] = *row;
        }
    }
    to->modules.count = n;
    qsort(to->modules.at, n, sizeof *to->modules.at, by_difference);
}

/* --- The whole --------------------------------------------------------------------------------- */

static onv_status compare_orders(compare *c)
{
    find_peak(c);
    ONV_TRY(list_predicted(c));
    ONV_TRY(list_measured(c));
    ONV_TRY(onv_align(&c->predicted, &c->measured, c->s->peak_requests));
    for (uint32_t j = 0; j < c->predicted.n; j++)
        c->to->paired_allocations += c->predicted.at[j].partner != ONV_NO_PARTNER;
    c->to->predicted_allocations = c->predicted.n;
    return find_parting(c);
}

static onv_status compare_peaks(compare *c)
{
    uint8_t *is_there = ONV_ARENA_ARRAY(c->arena, uint8_t, c->t->buffers.count);
    if (is_there == NULL) return onv_fail_memory(c->err);
    ONV_WORK(c->p->events.count + c->s->live.count);
    ONV_TRY(list_buffers(c, is_there));
    ONV_TRY(list_blocks(c, is_there));
    if (c->blocks.count > 1) qsort(c->blocks.at, c->blocks.count, sizeof *c->blocks.at, by_bytes);
    if (c->buffers.count > 1)
        qsort(c->buffers.at, c->buffers.count, sizeof *c->buffers.at, by_bytes);
    ONV_TRY(pair_by_size(c, false));
    ONV_TRY(pair_by_size(c, true));
    ONV_TRY(list_singles(c));
    sum_modules(c->to);
    return ONV_OK;
}

static onv_status name_peaks(compare *c)
{
    const onv_snapshot *s = c->s;
    const onv_pickled *frames =
        s->peak_requests > 0 ? s->requests.at[s->peak_requests - 1].frames : NULL;
    uint32_t step = c->p->events.count > 0 ? c->p->events.at[c->peak_event].step : 0;
    c->to->measured_peak =
        s->has_history ? stack_text(frames, c->arena) : "the moment of the snapshot";
    c->to->predicted_peak = step_text(c->kept, step, c->arena);
    return c->to->measured_peak != NULL && c->to->predicted_peak != NULL ? ONV_OK
                                                                         : onv_fail_memory(c->err);
}

onv_status onv_measured_compare(const onv_measured_request *request, const onv_snapshot *snapshot,
                                onv_measured *measured, onv_error *err)
{
    const onv_kept_execution *kept = request->execution;
    compare c = {.request = request,
                 .kept = kept,
                 .t = &kept->made.timeline,
                 .p = &kept->made.placement,
                 .s = snapshot,
                 .to = measured,
                 .arena = request->arena,
                 .err = err};
    measured->device = snapshot->device;
    measured->devices = snapshot->n_devices;
    measured->allocations = (uint32_t)snapshot->requests.count;
    measured->has_history = snapshot->has_history;
    measured->cached = (onv_measured_pair){kept->made.placement.figures.reserved_peak -
                                               kept->made.placement.figures.allocated_peak,
                                           snapshot->reserved_peak - snapshot->allocated_peak};
    onv_status status = compare_orders(&c);
    if (status == ONV_OK) status = compare_peaks(&c);
    if (status == ONV_OK) status = name_peaks(&c);
    onv_vec_cleanup(&c.buffers);
    onv_vec_cleanup(&c.blocks);
    return status;
}
