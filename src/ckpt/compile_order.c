/* When compiled products of backward run: each of the two gradients that a product makes is a kernel of its own, and
 * Inductor orders kernels by the memory that they take and give back (reorder_for_peak_memory, release 2.15). */
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"
#include "ckpt/compile_memory.h"

typedef struct product {
    uint32_t step;
    uint32_t weight_grad; /* buffer; ONV_NO_BUFFER: none */
    uint32_t other_grad;  /* the largest one that goes on to other operations; likewise */
    uint64_t freed_bytes; /* what it is the last to read */
    uint64_t most_freed;  /* the largest of these */
} product;

typedef struct order {
    onv_timeline *timeline;
    product *at;                             /* by backward step; step 0: no product */
    uint64_t *live, *made, *largest, *freed; /* by step: all that it makes, the largest of these */
    bool *takes_over;                        /* by buffer: it is written over another one */
    uint32_t *pending;                       /* steps */
    uint32_t n_pending;
    uint64_t pending_bytes;
    onv_error *err;
} order;

static bool is_product(const onv_step *step)
{
    if (step->phase != ONV_PHASE_BACKWARD || step->label == NULL) return false;
    onv_aten_id id = onv_aten_named(step->label);
    return id == ONV_ATEN_mm || id == ONV_ATEN_addmm || id == ONV_ATEN_bmm;
}

static bool is_tensor(const onv_buffer *b)
{
    return !(ONV_BUFFERS_BESIDE_TENSORS >> b->kind & 1);
}

static void find_products(order *o)
{
    onv_timeline *t = o->timeline;
    for (uint32_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        if (!is_tensor(b) || b->first >= t->steps.count) continue;
        if (!o->takes_over[i]) {
            o->made[b->first] += b->bytes;
            if (b->bytes > o->largest[b->first]) o->largest[b->first] = b->bytes;
        }
        product *first = &o->at[b->first];
        if (b->kind == ONV_BUFFER_GRADIENT && is_product(&t->steps.at[b->first])) {
            bool stays =
                b->last >= t->steps.count || t->steps.at[b->last].phase != ONV_PHASE_BACKWARD;
            uint32_t *grad = stays ? &first->weight_grad : &first->other_grad;
            if (*grad == ONV_NO_BUFFER || t->buffers.at[*grad].bytes < b->bytes) *grad = i;
        }
        if (b->last >= t->steps.count || b->first == b->last) continue;
        o->freed[b->last] += b->bytes;
        if (!is_product(&t->steps.at[b->last])) continue;
        product *last = &o->at[b->last];
        last->freed_bytes += b->bytes;
        if (b->kind == ONV_BUFFER_ACTIVATION && b->bytes > last->most_freed)
            last->most_freed = b->bytes;
    }
}

static bool add(order *o, uint64_t bytes, uint32_t first, uint32_t last, const char *label)
{
    onv_buffer buffer = onv_buffer_new(ONV_BUFFER_TEMPORARY, bytes, first, last, label);
    return onv_vec_push(&o->timeline->buffers, buffer);
}

/* Is what the step runs a part of fused kernels? The loss is not compiled. */
static bool is_fused(const onv_step *step)
{
    static const char *const apart[] = {"=c", "=C", "=k", "=n", "=N", "!c", "!n"};
    if (!onv_is_node(step->node) || step->label == NULL) return false;
    const onv_aten_op *row = &onv_aten_ops[onv_aten_named(step->label)];
    if (!onv_aten_is_compiled(row)) return false;
    bool is_backward = step->phase == ONV_PHASE_BACKWARD;
    const char *text = row->recipe;
    if (text != NULL && is_backward) text = onv_aten_next_text(text);
    if (!is_backward && strncmp(step->label, "dropout", 7) == 0) return true;
    for (size_t i = 0; i < sizeof apart / sizeof apart[0] && text != NULL; i++)
        if (strstr(text, apart[i]) != NULL) return false;
    return true;
}

static bool passes(const order *o, const onv_buffer *b)
{
    return (b->kind == ONV_BUFFER_GRADIENT || b->kind == ONV_BUFFER_ACTIVATION) &&
           b->last < o->timeline->steps.count && b->first < b->last;
}

/* A fused kernel writes its result over what it is the last to read, where that is as large. */
static void take_over(order *o)
{
    onv_timeline *t = o->timeline;
    for (uint32_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        if (!passes(o, b) || !is_fused(&t->steps.at[b->last])) continue;
        bool is_forward = t->steps.at[b->last].phase == ONV_PHASE_FORWARD;
        if (is_forward == (b->kind == ONV_BUFFER_ACTIVATION)) o->freed[b->last] = b->bytes;
    }
    for (uint32_t i = 0; i < t->buffers.count; i++) {
        onv_buffer *b = &t->buffers.at[i];
        bool is_forward = passes(o, b) && t->steps.at[b->first].phase == ONV_PHASE_FORWARD;
        if (!passes(o, b) || o->freed[b->first] != b->bytes ||
            is_forward != (b->kind == ONV_BUFFER_ACTIVATION))
            continue;
        o->freed[b->first] = 0;
        o->takes_over[i] = true;
        b->first++;
    }
}

/* The gradient of a weight first: what it reads may go before the other one is made. */
static bool divide_product(order *o, const product *p)
{
    if (p->other_grad == ONV_NO_BUFFER || p->most_freed == 0) return true;
    onv_buffer *grad = &o->timeline->buffers.at[p->other_grad];
    if (grad->last == p->step) return true;
    uint64_t bytes = grad->bytes;
    grad->first = p->step + 1;
    return bytes <= p->most_freed || add(o, bytes - p->most_freed, p->step, p->step, grad->label);
}

/* --- Later ------------------------------------------------------------------------------------- */

static uint64_t bytes_of(const order *o, uint32_t step)
{
    return o->timeline->buffers.at[o->at[step].weight_grad].bytes;
}

/* As topological_sort_lpmf compares: what raises the most so far goes last, by its size; else what adds less to
 * what stays. */
static bool goes_first(const order *o, const product *p, uint32_t step, uint64_t most)
{
    uint64_t live = o->live[step] - o->pending_bytes, made = o->largest[step];
    uint64_t before = live > o->made[step] ? live - o->made[step] : 0;
    uint64_t bytes = bytes_of(o, p->step), gap = most > before ? most - before : 0;
    uint64_t raised = bytes > gap ? bytes : 0, raised_by_next = made > gap ? made : 0;
    if (raised != raised_by_next) return raised < raised_by_next;
    return bytes + o->freed[step] < made + p->freed_bytes;
}

/* `pending` is a heap: the one that makes the least comes first. */
static void push(order *o, uint32_t step)
{
    uint32_t at = o->n_pending++;
    for (; at > 0 && bytes_of(o, o->pending[(at - 1) / 2]) > bytes_of(o, step); at = (at - 1) / 2)
        o->pending[at] = o->pending[(at - 1) / 2];
    o->pending[at] = step;
    o->pending_bytes += bytes_of(o, step);
}

static uint32_t pop(order *o)
{
    uint32_t least = o->pending[0], moved = o->pending[--o->n_pending], at = 0, child;
    for (; (child = 2 * at + 1) < o->n_pending; at = child) {
        child += child + 1 < o->n_pending &&
                 bytes_of(o, o->pending[child + 1]) < bytes_of(o, o->pending[child]);
        if (bytes_of(o, o->pending[child]) >= bytes_of(o, moved)) break;
        o->pending[at] = o->pending[child];
    }
    o->pending[at] = moved;
    o->pending_bytes -= bytes_of(o, least);
    return least;
}

/* Those that go before the step. */
static bool run_pending(order *o, uint32_t step, uint64_t most, bool all)
{
    while (o->n_pending > 0 && (all || goes_first(o, &o->at[o->pending[0]], step, most))) {
        const product *p = &o->at[pop(o)];
        onv_work(1);
        o->timeline->buffers.at[p->weight_grad].first = step;
        if (p->freed_bytes > 0 && step > p->step + 1 &&
            !add(o, p->freed_bytes, p->step + 1, step, "operands of a later product"))
            return false;
    }
    return true;
}

/* Of the steps of one backward pass. */
static bool postpone(order *o, uint32_t begin, uint32_t end)
{
    uint64_t most = o->live[begin] > o->live[end - 1] ? o->live[begin] : o->live[end - 1];
    o->n_pending = 0;
    o->pending_bytes = 0;
    for (uint32_t s = begin; s < end; s++) {
        const product *p = &o->at[s];
        if (!run_pending(o, s, most, s + 1 == end)) return false;
        if (p->weight_grad != ONV_NO_BUFFER && s + 1 < end && bytes_of(o, s) > p->freed_bytes)
            push(o, s);
        uint64_t live = o->live[s] - o->pending_bytes;
        if (live > most) most = live;
    }
    return true;
}

static onv_status postpone_all(order *o)
{
    const onv_timeline *t = o->timeline;
    onv_peak peak;
    ONV_TRY(onv_timeline_peak_without(t, ONV_BUFFERS_BESIDE_TENSORS, &peak, o->live, o->err));
    for (uint32_t begin = 0, end; begin < t->steps.count; begin = end) {
        for (end = begin; end < t->steps.count && t->steps.at[end].phase == ONV_PHASE_BACKWARD;)
            end++;
        if (end > begin && !postpone(o, begin, end)) return onv_fail_memory(o->err);
        end += end == begin;
    }
    return ONV_OK;
}

static onv_status order_products(order *o)
{
    uint32_t n = (uint32_t)o->timeline->steps.count;
    for (uint32_t s = 0; s < n; s++)
        o->at[s] = (product){.step = s, .weight_grad = ONV_NO_BUFFER, .other_grad = ONV_NO_BUFFER};
    take_over(o);
    memset(o->freed, 0, n * sizeof *o->freed);
    find_products(o);
    for (uint32_t s = 0; s < n; s++)
        if (!divide_product(o, &o->at[s])) return onv_fail_memory(o->err);
    return postpone_all(o);
}

onv_status onv_compile_order_products(onv_timeline *timeline, onv_error *err)
{
    size_t n = timeline->steps.count + 1;
    order o = {
        .timeline = timeline,
        .at = onv_heap_calloc(n, sizeof *o.at),
        .live = onv_heap_calloc(n, sizeof *o.live),
        .made = onv_heap_calloc(n, sizeof *o.made),
        .largest = onv_heap_calloc(n, sizeof *o.largest),
        .freed = onv_heap_calloc(n, sizeof *o.freed),
        .takes_over = onv_heap_calloc(timeline->buffers.count + 1, sizeof *o.takes_over),
        .pending = onv_heap_calloc(n, sizeof *o.pending),
        .err = err,
    };
    bool is_there = o.at != NULL && o.live != NULL && o.made != NULL && o.largest != NULL &&
                    o.freed != NULL && o.takes_over != NULL && o.pending != NULL;
    onv_status status = is_there ? order_products(&o) : onv_fail_memory(err);
    onv_heap_free(o.at);
    onv_heap_free(o.live);
    onv_heap_free(o.made);
    onv_heap_free(o.largest);
    onv_heap_free(o.freed);
    onv_heap_free(o.takes_over);
    onv_heap_free(o.pending);
    return status;
}
