#include "plan/part.h"

#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/sort.h"

#define NONE UINT32_MAX

typedef struct box {
    uint32_t lo, hi;
    uint64_t size;
    uint32_t first, second; /* the boxes in it; NONE: a row */
    bool is_stack, is_gone; /* the second lies on the first; it is in another one */
} box;

enum { FIRST_SHIFT = 8 };

struct onv_boxes {
    const onv_part *part;
    ONV_VEC(box) boxes; /* the part's rows, then what they go into */
    uint64_t *load;     /* by section */
    uint32_t *order;
    uint64_t limit;           /* of the load */
    uint64_t work, most_work; /* of a pass over all boxes: the most */
    uint64_t round_work;
    unsigned shift; /* of the round: at most 1 of 2^shift of a box is empty */
};

/* By size, then time: what can be a chain stands together. */
static int by_size(const void *a, const void *b, void *context)
{
    const box *boxes = context, *x = &boxes[*(const uint32_t *)a],
              *y = &boxes[*(const uint32_t *)b];
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return x->lo != y->lo ? (x->lo < y->lo ? -1 : 1) : x < y ? -1 : x > y;
}

static int by_time(const void *a, const void *b, void *context)
{
    const box *boxes = context, *x = &boxes[*(const uint32_t *)a],
              *y = &boxes[*(const uint32_t *)b];
    if (x->lo != y->lo) return x->lo < y->lo ? -1 : 1;
    return x->hi != y->hi ? (x->hi > y->hi ? -1 : 1) : x < y ? -1 : x > y;
}

static bool has_room(onv_boxes *p, uint32_t lo, uint32_t hi, uint64_t size)
{
    uint32_t s = lo;
    while (s < hi && p->load[s] + size <= p->limit) s++;
    p->work += s - lo + 1;
    return s == hi;
}

static void add_load(onv_boxes *p, uint32_t lo, uint32_t hi, uint64_t size)
{
    for (uint32_t s = lo; s < hi; s++) p->load[s] += size;
}

/* The share of a stack of both that is empty; 2: more than may be. */
static double empty_of(const onv_boxes *p, const box *a, const box *b)
{
    uint32_t lo = a->lo < b->lo ? a->lo : b->lo, hi = a->hi > b->hi ? a->hi : b->hi;
    double width = hi - lo, area = width * (double)(a->size + b->size);
    double full = (double)a->size * (a->hi - a->lo) + (double)b->size * (b->hi - b->lo);
    double empty = (area - full) / area;
    return empty * (double)(1u << p->shift) <= 1 ? empty : 2;
}

static bool join(onv_boxes *p, uint32_t first, uint32_t second, bool is_stack)
{
    box a = p->boxes.at[first], b = p->boxes.at[second];
    box both = {.lo = a.lo < b.lo ? a.lo : b.lo,
                .hi = a.hi > b.hi ? a.hi : b.hi,
                .size = is_stack ? a.size + b.size : a.size,
                .first = first,
                .second = second,
                .is_stack = is_stack};
    p->boxes.at[first].is_gone = p->boxes.at[second].is_gone = true;
    add_load(p, both.lo, both.hi, both.size);
    add_load(p, a.lo, a.hi, 0 - a.size);
    add_load(p, b.lo, b.hi, 0 - b.size);
    return onv_vec_push(&p->boxes, both);
}

static bool fits(onv_boxes *p, const box *a, const box *b)
{
    const box *early = a->lo < b->lo ? a : b, *late = a->lo < b->lo ? b : a;
    const box *longer = a->hi > b->hi ? a : b, *shorter = a->hi > b->hi ? b : a;
    return has_room(p, early->lo, late->lo, late->size) &&
           has_room(p, shorter->hi, longer->hi, shorter->size);
}

/* The boxes that are in no other one, in an order. */
static uint32_t list(onv_boxes *p, int (*by)(const void *a, const void *b, void *context))
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->boxes.count; i++)
        if (!p->boxes.at[i].is_gone) p->order[n++] = i;
    onv_sort_ids(p->order, n, by, p->boxes.at);
    p->work += p->boxes.count + (size_t)n * 16;
    return n;
}

/* Each with the next one of its size. */
static bool make_chains(onv_boxes *p, uint32_t *n_made)
{
    uint32_t n = list(p, by_size);
    for (uint32_t i = 0; i < n; i++) {
        const box *a = &p->boxes.at[p->order[i]];
        if (a->is_gone) continue;
        for (uint32_t k = i + 1; k < n && p->work < p->most_work; k++) {
            const box *b = &p->boxes.at[p->order[k]];
            p->work += 4;
            if (b->size != a->size) break;
            if (b->is_gone || b->lo < a->hi) continue;
            double gap = b->lo - a->hi, width = b->hi - a->lo;
            if (gap * (double)(1u << p->shift) > width || !has_room(p, a->hi, b->lo, a->size))
                break;
            if (!join(p, p->order[i], p->order[k], false)) return false;
            ++*n_made;
            break;
        }
    }
    return true;
}

/* Each with the one that leaves the least empty. */
static bool make_stacks(onv_boxes *p, uint32_t *n_made)
{
    uint32_t n = list(p, by_time);
    for (uint32_t i = 0; i < n; i++) {
        const box *a = &p->boxes.at[p->order[i]];
        if (a->is_gone) continue;
        double least = 1;
        uint32_t best = NONE;
        for (uint32_t k = i + 1; k < n && p->work < p->most_work; k++) {
            const box *b = &p->boxes.at[p->order[k]];
            p->work += 4;
            if (b->lo >= a->hi) break;
            if (b->is_gone) continue;
            double empty = empty_of(p, a, b);
            if (empty >= least || !fits(p, a, b)) continue;
            least = empty;
            best = k;
        }
        if (best == NONE) continue;
        if (!join(p, p->order[i], p->order[best], true)) return false;
        ++*n_made;
    }
    return true;
}

/* Boxes of a round that are left, planned as rows of their own. */
static onv_status plan_boxes(onv_boxes *p, uint64_t work, onv_layout *layout, onv_effort *effort,
                             const char *name, onv_error *err)
{
    uint32_t n = list(p, by_time);
    onv_plan_buffer *rows = onv_heap_calloc(n, sizeof *rows);
    uint64_t *offsets = onv_heap_calloc(p->boxes.count, sizeof *offsets);
    onv_plan plan = {0};
    onv_plan_options how = {.effort = work < effort->left ? work : effort->left,
                            .capacity = layout->target,
                            .are_boxes = true,
                            .cancelled = effort->cancelled,
                            .cancel_context = effort->context};
    for (uint32_t i = 0; i < n && rows != NULL; i++) {
        const box *b = &p->boxes.at[p->order[i]];
        rows[i] = (onv_plan_buffer){.lower = b->lo, .upper = b->hi, .size = b->size};
    }
    onv_status status = rows == NULL || offsets == NULL
                            ? onv_fail_memory(err)
                            : onv_plan_compute(rows, n, &how, &plan, err);
    for (uint32_t i = 0; i < n && status == ONV_OK; i++) offsets[p->order[i]] = plan.offsets[i];
    /* Boxes come behind what is in them. */
    for (size_t i = p->boxes.count; i-- > p->part->n && status == ONV_OK;) {
        const box *b = &p->boxes.at[i];
        offsets[b->first] = offsets[i];
        offsets[b->second] = offsets[i] + (b->is_stack ? p->boxes.at[b->first].size : 0);
    }
    effort->nodes += plan.nodes;
    onv_effort_book(effort, plan.work);
    if (status == ONV_OK) onv_layout_offer(layout, effort, p->part, offsets, name);
    onv_plan_cleanup(&plan);
    onv_heap_free(rows);
    onv_heap_free(offsets);
    return status;
}

/* Puts boxes into others as long as one leaves no more than its share empty. */
static onv_status fill(onv_boxes *p, uint32_t *n_made, onv_effort *effort, onv_error *err)
{
    enum { MOST_PASS_WORK = 20000000 };
    for (uint32_t n = 1; n > 0; *n_made += n) {
        uint64_t before = p->work;
        p->most_work = before + MOST_PASS_WORK;
        n = 0;
        if (!make_chains(p, &n) || (n == 0 && !make_stacks(p, &n))) return onv_fail_memory(err);
        if (!onv_effort_spend(effort, p->work - before)) break;
    }
    return ONV_OK;
}

/* Every row is a box of its own. */
static void start(onv_boxes *p)
{
    const onv_part *part = p->part;
    p->boxes.count = 0;
    p->shift = FIRST_SHIFT;
    memset(p->load, 0, part->sections * sizeof *p->load);
    for (uint32_t row = 0; row < part->n; row++) {
        box b = {.lo = part->lo[row],
                 .hi = part->hi[row],
                 .size = part->size[row],
                 .first = NONE,
                 .second = NONE};
        p->boxes.at[p->boxes.count++] = b;
        add_load(p, b.lo, b.hi, b.size);
    }
}

onv_status onv_boxes_run(onv_boxes *p, onv_layout *layout, onv_effort *effort, const char *name,
                         onv_error *err)
{
    uint32_t n_made = 0;
    p->limit = layout->target > p->part->load ? layout->target : p->part->load;
    if (p->shift == 0) p->round_work *= 4;
    if (p->shift == 0) start(p);
    ONV_TRY(fill(p, &n_made, effort, err));
    if (n_made > 0 && effort->left > 0)
        ONV_TRY(plan_boxes(p, p->round_work, layout, effort, name, err));
    p->shift--;
    return ONV_OK;
}

onv_status onv_boxes_new(const onv_part *part, onv_boxes **boxes, onv_error *err)
{
    enum { FIRST_WORK = 4000000 };
    onv_boxes *p = *boxes = onv_heap_calloc(1, sizeof *p);
    if (p == NULL) return onv_fail_memory(err);
    p->part = part;
    p->round_work = FIRST_WORK;
    p->load = onv_heap_calloc(part->sections, sizeof *p->load);
    p->order = onv_heap_calloc(part->n, sizeof *p->order);
    if (p->load == NULL || p->order == NULL || !onv_vec_reserve(&p->boxes, 2 * (size_t)part->n))
        return onv_fail_memory(err);
    start(p);
    return ONV_OK;
}

void onv_boxes_destroy(onv_boxes *p)
{
    if (p == NULL) return;
    onv_vec_cleanup(&p->boxes);
    onv_heap_free(p->load);
    onv_heap_free(p->order);
    onv_heap_free(p);
}
