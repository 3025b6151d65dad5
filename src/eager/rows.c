/* Steps and rows. They make a timeline; or, where many plans are compared, sums alone: what stands in a step is
 * what was there before it and what begins with it, and what ends with it goes when the next one begins. */
#include "base/checked.h"
#include "base/quota.h"
#include "eager/simulation.h"

enum { TENSORS = ONV_METER_TENSORS, ALL = ONV_METER_ALL };

static void record(onv_simulation *s, onv_request_kind kind, uint32_t row, uint64_t bytes)
{
    onv_alloc_request request = {.bytes = bytes, .id = row, .kind = (uint8_t)kind};
    if (s->meter == NULL || s->requests == NULL || s->failed) return;
    s->work++;
    if (!onv_vec_push(&s->requests->at, request)) s->failed = true;
}

static void give_ending_back(onv_simulation *s)
{
    onv_meter *m = s->meter;
    for (size_t i = 0; i < m->ending.count; i++) record(s, ONV_REQUEST_FREE, m->ending.at[i], 0);
    m->ending.count = 0;
}

void onv_sim_end_step(onv_simulation *s)
{
    onv_meter *m = s->meter;
    give_ending_back(s);
    for (int k = 0; k < 2; k++) {
        if (m->counts && m->there[k] > m->most[k]) m->most[k] = m->there[k];
        m->there[k] -= m->going[k];
        m->going[k] = 0;
    }
    m->is_stopped = m->limit > 0 && m->most[TENSORS] > m->limit;
    if (m->is_stopped) s->failed = true;
    m->counts = s->iteration > 0;
}

void onv_plain_note(onv_simulation *s, size_t *end)
{
    if (s->notes == NULL) return;
    onv_sim_end_step(s);
    *end = s->notes->requests.at.count;
}

static void raise_most(onv_meter *m, unsigned which, uint64_t more)
{
    if (m->there[which] + more > m->most[which]) m->most[which] = m->there[which] + more;
}

static void end_metered(onv_simulation *s, uint32_t row)
{
    onv_meter *m = s->meter;
    const onv_metered *at = &m->rows.at[row];
    if (s->requests != NULL && !onv_vec_push(&m->ending, row)) s->failed = true;
    m->going[ALL] += at->bytes;
    if (!at->is_workspace) m->going[TENSORS] += at->bytes;
}

static void play(onv_simulation *s, const onv_alloc_request *at)
{
    onv_meter *m = s->meter;
    if (at->kind == ONV_REQUEST_FREE) {
        if (--s->refs.at[at->id] == 0) end_metered(s, at->id);
        return;
    }
    if (at->kind == ONV_REQUEST_ALLOC) {
        m->there[ALL] += at->bytes;
        if (!m->rows.at[at->id].is_workspace) m->there[TENSORS] += at->bytes;
    } else if (at->kind == ONV_REQUEST_PASS) {
        raise_most(m, ALL,
                   s->plain->requests.passing.at[at->id].bytes[s->options->lower.cuda.choice]);
    } else if (at->kind == ONV_REQUEST_STEP) {
        if (m->going[ALL] > 0) onv_sim_end_step(s);
        return;
    } else {
        onv_sim_note_ask(s, at->id);
        return;
    }
    if (s->requests != NULL && !onv_vec_push(&s->requests->at, *at)) s->failed = true;
}

void onv_plain_play(onv_simulation *s, size_t end)
{
    onv_meter *m = s->meter;
    s->work += (uint32_t)(end - s->played);
    for (; s->played < end && !s->failed; s->played++)
        play(s, &s->plain->requests.at.at[s->played]);
    raise_most(m, ALL, 0);
    raise_most(m, TENSORS, 0);
    m->is_stopped = m->limit > 0 && m->most[TENSORS] > m->limit;
    if (m->is_stopped) s->failed = true;
}

void onv_sim_step(onv_simulation *s, onv_phase phase, onv_node_id node, const char *label)
{
    s->phase = phase;
    if (!onv_work(s->work + (s->meter != NULL ? 1 : 2))) s->failed = true;
    s->work = 0;
    if (s->meter == NULL) {
        onv_step next = {
            .phase = (uint8_t)phase, .iteration = s->iteration, .node = node, .label = label};
        if (!onv_vec_push(&s->timeline->steps, next)) s->failed = true;
    } else if (s->n_steps > 0) {
        onv_sim_end_step(s);
        if (s->notes != NULL) record(s, ONV_REQUEST_STEP, 0, 0);
    }
    s->n_steps++;
}

void onv_sim_count_backward(onv_simulation *s, uint32_t index)
{
    if (onv_sim_is_counted(s)) s->options->runs[index].goes_back = true;
}

void onv_sim_count_sum(onv_simulation *s, uint64_t bytes)
{
    if (!onv_sim_is_counted(s)) return;
    s->program->summed_bytes = onv_u64_plus(s->program->summed_bytes, bytes);
    s->program->n_sums++;
}

void onv_sim_work(onv_simulation *s, uint32_t index, bool recompute)
{
    uint64_t macs = s->eager->ops.at[index].macs;
    if (s->failed) return;
    if (s->meter == NULL) {
        onv_step *step = &s->timeline->steps.at[s->timeline->steps.count - 1];
        step->macs = macs;
        step->is_recompute = recompute;
    }
    if (!onv_sim_is_counted(s)) return;
    if (recompute && s->options->runs != NULL) s->options->runs[index].again++;
    uint64_t *sum = recompute ? &s->program->recomputed_macs : &s->program->forward_macs;
    *sum = onv_u64_plus(*sum, macs);
}

static uint32_t now(const onv_simulation *s)
{
    return s->n_steps == 0 ? 0 : s->n_steps - 1;
}

static bool meter_alloc(onv_meter *m, uint64_t bytes, onv_buffer_kind kind)
{
    onv_metered row = {bytes, kind == ONV_BUFFER_WORKSPACE};
    if (!onv_u64_add(m->all, bytes, &m->all)) m->overflows = true;
    m->there[ALL] += bytes;
    if (!row.is_workspace) m->there[TENSORS] += bytes;
    return !m->overflows && onv_vec_push(&m->rows, row);
}

uint32_t onv_sim_alloc(onv_simulation *s, uint64_t bytes, onv_buffer_kind kind, const char *label)
{
    bool fits = !s->failed;
    s->work++;
    if (fits && s->meter != NULL)
        fits = meter_alloc(s->meter, bytes, kind);
    else if (fits)
        fits = onv_vec_push(&s->timeline->buffers,
                            onv_buffer_new(kind, bytes, now(s), UINT32_MAX, label));
    if (!fits || !onv_vec_push(&s->refs, 1)) {
        s->failed = true;
        return ONV_NO_ROW;
    }
    record(s, ONV_REQUEST_ALLOC, (uint32_t)s->refs.count - 1, bytes);
    return (uint32_t)s->refs.count - 1;
}

uint64_t onv_sim_bytes(const onv_simulation *s, uint32_t row)
{
    return s->meter != NULL ? s->meter->rows.at[row].bytes : s->timeline->buffers.at[row].bytes;
}

void onv_sim_end_row(onv_simulation *s, uint32_t row)
{
    if (s->meter == NULL) {
        s->timeline->buffers.at[row].last = now(s);
        return;
    }
    end_metered(s, row);
}

/* Gone before anything else is allocated. */
static void transient(onv_simulation *s, const onv_passing *sizes, const char *label)
{
    onv_meter *m = s->meter;
    uint64_t bytes = sizes->bytes[s->options->lower.cuda.choice];
    if (s->requests != NULL) {
        record(s, ONV_REQUEST_PASS, (uint32_t)s->requests->passing.count, 0);
        if (!onv_vec_push(&s->requests->passing, *sizes)) s->failed = true;
    }
    if (bytes == 0 && (m != NULL || s->requests == NULL)) return;
    if (m != NULL) {
        s->work++;
        if (!onv_u64_add(m->all, bytes, &m->all)) m->overflows = s->failed = true;
        if (m->counts && m->there[ALL] + bytes > m->most[ALL]) m->most[ALL] = m->there[ALL] + bytes;
        return;
    }
    uint32_t row = onv_sim_alloc(s, bytes, ONV_BUFFER_WORKSPACE, label);
    if (row == ONV_NO_ROW) return;
    s->timeline->buffers.at[row].is_transient = true;
    onv_sim_release(s, row);
}

void onv_sim_note_ask(onv_simulation *s, unsigned which)
{
    if (s->requests == NULL || (s->asked >> which & 1) != 0) return;
    s->asked |= 1u << which;
    if (s->notes != NULL) {
        record(s, ONV_REQUEST_LASTING, which, 0);
        return;
    }
    bool is_row = which < ONV_N_LASTING;
    uint32_t first = is_row ? s->lasting_row[which] : s->states[0];
    uint32_t end = is_row ? first + 1 : s->states[1];
    for (uint32_t row = first; row < end && row != ONV_NO_ROW; row++)
        record(s, ONV_REQUEST_ALLOC, row, onv_sim_bytes(s, row));
}

void onv_sim_last(onv_simulation *s, onv_lasting which, uint64_t bytes, const char *label)
{
    uint32_t *row = &s->lasting_row[which];
    onv_sim_note_ask(s, which);
    if (*row == ONV_NO_ROW) *row = onv_sim_alloc(s, bytes, ONV_BUFFER_WORKSPACE, label);
}

void onv_sim_handle(onv_simulation *s, const onv_eager_workspace *workspace)
{
    onv_lasting which = s->in_backward ? ONV_LASTING_BACKWARD_HANDLE : ONV_LASTING_HANDLE;
    if (workspace->kept_bytes > 0) onv_sim_last(s, which, workspace->kept_bytes, "cuBLAS");
}

void onv_sim_use(onv_simulation *s, const onv_eager_workspace *workspace)
{
    bool is_first = s->options->tries_kernels && s->pass == 0 && workspace->first_bytes > 0;
    bool is_open = workspace->high_bytes > 0 && !is_first;
    uint64_t bytes = is_first ? workspace->first_bytes : workspace->bytes;
    const onv_passing sizes = {{[ONV_WORKSPACE_LIKELY] = bytes,
                                [ONV_WORKSPACE_LEAST] = is_open ? workspace->low_bytes : bytes,
                                [ONV_WORKSPACE_MOST] = is_open ? workspace->high_bytes : bytes}};
    onv_sim_handle(s, workspace);
    if (bytes > 0 || is_open) transient(s, &sizes, workspace->library);
    if (workspace->beside_bytes == 0) return;
    onv_passing beside = {{0}};
    for (int i = 0; i < ONV_N_PASSING; i++)
        if (sizes.bytes[i] > 0) beside.bytes[i] = workspace->beside_bytes;
    transient(s, &beside, workspace->library);
}
