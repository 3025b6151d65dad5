#include "api/size_facts.h"

#include <math.h>

#include "runtime/fit.h"

/* A search by lines takes some twenty sizes. */
enum { FINE = 1024, MOST_ASKED = 64, MOST_MISLED = 2, MOST_LINES = 5, MOST_STEP = 8 };

onv_size_fact onv_size_fact_of(const onv_runtime_result *r, int64_t size, uint64_t usable_bytes)
{
    uint64_t total = r->total_bytes.high;
    onv_size_fact f = {
        .size = size, .is_known = true, .allocated = r->allocated_peak_bytes, .of = {total, total}};
    f.reaches[ONV_FITS] = total <= usable_bytes && !r->out_of_memory;
    f.reaches[ONV_BY_RELEASE] = f.reaches[ONV_FITS] || r->release.suffices;
    if (r->reserved_peak_bytes >= r->allocated_peak_bytes && total >= r->reserved_peak_bytes)
        f.of[ONV_BY_RELEASE] -= r->reserved_peak_bytes - r->allocated_peak_bytes;
    return f;
}

static const onv_size_fact *find_fact(const onv_size_facts *s, int64_t size)
{
    for (size_t i = 0; i < s->at.count; i++)
        if (s->at.at[i].size == size && s->at.at[i].is_known) return &s->at.at[i];
    return NULL;
}

static int64_t gap_of(const onv_size_fact *f, int64_t size)
{
    return f->size > size ? f->size - size : size - f->size;
}

static double times_apart(int64_t a, int64_t b)
{
    return a > b ? (double)a / (double)b : (double)b / (double)a;
}

/* By which part of the usable bytes a line has to miss them, the nearest analysed size being so many times as large or
 * small; 1: no line is clear. Answers keep away from where totals fall: they do by some hundredths, where segments of the
 * allocator have less unused space, or libraries other algorithms. */
static double clear_part(double times)
{
    static const double parts[][2] = {{1.5, 1.0 / 16}, {4, 1.0 / 8}, {16, 1.0 / 4}, {64, 1.0 / 2}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (times <= parts[i][0]) return parts[i][1];
    return 1;
}

bool onv_size_line(const onv_size_facts *s, int goal, int64_t size, double *bytes, double *times)
{
    const onv_size_fact *near = NULL, *next = NULL;
    for (size_t i = 0; i < s->at.count; i++) {
        const onv_size_fact *f = &s->at.at[i];
        if (f->of[goal] == UINT64_MAX) continue;
        if (near == NULL || gap_of(f, size) < gap_of(near, size)) {
            next = near;
            near = f;
        } else if (next == NULL || gap_of(f, size) < gap_of(next, size)) {
            next = f;
        }
    }
    if (next == NULL) return false;
    double from = (double)near->of[goal], step = (double)next->of[goal] - from;
    *bytes = from + step * (double)(size - near->size) / (double)(next->size - near->size);
    const onv_size_fact *analysed = near->is_known ? near : next;
    *times = analysed->is_known ? times_apart(analysed->size, size) : 0;
    return true;
}

/* What is far from all that is in doubt is clear without a line. */
static bool is_far(const onv_size_facts *s, int goal, int64_t size, bool *reaches)
{
    enum { FAR = 4 };
    for (size_t i = 0; i < s->at.count; i++) {
        const onv_size_fact *f = &s->at.at[i];
        *reaches = f->reaches[goal];
        if (f->is_known && (*reaches ? f->size / FAR >= size : f->size <= size / FAR)) return true;
    }
    return false;
}

/* What returned memory achieves follows from what is allocated, too, but not at once from how much that may be: the
 * analysed sizes tell. */
static bool is_known_by_release(const onv_size_facts *s, double bytes, bool *reaches)
{
    for (size_t i = 0; i < s->at.count; i++) {
        const onv_size_fact *f = &s->at.at[i];
        double at = (double)f->of[ONV_BY_RELEASE];
        *reaches = f->reaches[ONV_BY_RELEASE];
        if (f->is_known && (*reaches ? bytes <= at : bytes >= at)) return true;
    }
    return false;
}

/* False: it has to be analysed. */
static bool decide(const onv_size_facts *s, int goal, int64_t size, bool *reaches)
{
    const onv_size_fact *known = find_fact(s, size);
    double usable = (double)s->usable_bytes, bytes, times;
    if (known != NULL) {
        *reaches = known->reaches[goal];
        return true;
    }
    if (goal == ONV_BY_RELEASE && decide(s, ONV_FITS, size, reaches) && *reaches)
        return true; /* it needs no memory returned */
    if (s->asked[goal] > MOST_ASKED || s->misled[goal] >= MOST_MISLED) return false;
    if (is_far(s, goal, size, reaches)) return true;
    if (!onv_size_line(s, goal, size, &bytes, &times)) return false;
    if (goal == ONV_BY_RELEASE && bytes < usable)
        return times > 0 && is_known_by_release(s, bytes, reaches);
    double part = times > 0 && s->errors < 2 ? clear_part(times) : 1;
    if (s->errors == 1 && part < 1.0 / 4) part = 1.0 / 4;
    *reaches = bytes < usable;
    return part < 1 && fabs(bytes - usable) > part * usable;
}

bool onv_size_add(onv_size_facts *s, onv_size_fact f)
{
    double bytes, times;
    bool reaches;
    if (find_fact(s, f.size) != NULL) return true;
    if (f.is_known && onv_size_line(s, ONV_FITS, f.size, &bytes, &times) && times > 0 &&
        (bytes < (double)s->usable_bytes) != f.reaches[ONV_FITS])
        s->errors++;
    for (int goal = 0; goal < ONV_SIZE_GOALS && f.is_known; goal++)
        if (s->wanted[goal] == f.size && decide(s, goal, f.size, &reaches))
            s->misled[goal] += reaches != f.reaches[goal];
    return onv_vec_push(&s->at, f);
}

int64_t onv_size_grain(int64_t size)
{
    int64_t grain = 1;
    while (size / grain >= 2 * (int64_t)FINE) grain *= 2;
    return grain;
}

static void look(onv_size_facts *s, int goal)
{
    int64_t low = 0, high = 0, *wanted = &s->wanted[goal];
    bool reaches = false;
    while ((high == 0 && low < ONV_MAX_BATCH) || high - low > 1) {
        int64_t size = high > 0 ? low + (high - low) / 2 : low > 0 ? 2 * low : 1;
        if (size > ONV_MAX_BATCH) size = ONV_MAX_BATCH;
        *wanted = size;
        if (!decide(s, goal, size, &reaches)) return;
        *(reaches ? &low : &high) = size;
    }
    s->found[goal] = low;
    *wanted = low > 0 && find_fact(s, low) == NULL     ? low
              : high > 0 && find_fact(s, high) == NULL ? high
                                                       : 0;
}

void onv_size_look(onv_size_facts *s, int goal)
{
    int64_t before = s->wanted[goal];
    look(s, goal);
    s->asked[goal] += s->wanted[goal] != before;
}

/* The analysed sizes around the answer; NULL: there is none. */
typedef struct bracket {
    const onv_size_fact *low, *high;
    const onv_size_fact *before; /* of what is below the low one, the next */
    const onv_size_fact *beyond; /* above the high one */
} bracket;

static bracket find_bracket(const onv_size_facts *s, int goal)
{
    bracket b = {NULL, NULL, NULL, NULL};
    for (size_t i = 0; i < s->at.count; i++) {
        const onv_size_fact *f = &s->at.at[i];
        if (f->is_known && f->reaches[goal] && (b.low == NULL || f->size > b.low->size)) b.low = f;
    }
    int64_t low = b.low != NULL ? b.low->size : 0;
    for (size_t i = 0; i < s->at.count; i++) {
        const onv_size_fact *f = &s->at.at[i];
        if (f->is_known && f->size > low && (b.high == NULL || f->size < b.high->size)) {
            b.beyond = b.high;
            b.high = f;
        } else if (f->is_known && b.high != NULL && f->size > b.high->size &&
                   (b.beyond == NULL || f->size < b.beyond->size)) {
            b.beyond = f;
        }
        bool is_before = f->size < low || (b.low == NULL && !f->is_known);
        if (is_before && (b.before == NULL || f->size > b.before->size)) b.before = f;
    }
    return b;
}

/* Where the line meets the budget; after many of them the middle. */
static int64_t aim(const onv_size_facts *s, int goal, const bracket *b)
{
    const onv_size_fact *from = b->low != NULL ? b->low : b->before != NULL ? b->before : b->beyond;
    const onv_size_fact *to = b->high != NULL ? b->high : b->before;
    int64_t low = b->low != NULL ? b->low->size : 0;
    int64_t end = b->high != NULL ? b->high->size : MOST_STEP * (low > 0 ? low : 1) + 1;
    double at = (double)low + (double)(end - low) / 2;
    if (from != NULL && to != NULL && from != to && to->of[goal] < UINT64_MAX &&
        from->of[goal] < UINT64_MAX && (b->high == NULL || s->asked[goal] < MOST_LINES)) {
        double slope =
            ((double)to->of[goal] - (double)from->of[goal]) / (double)(to->size - from->size);
        double line =
            (double)from->size + ((double)s->usable_bytes - (double)from->of[goal]) / slope;
        if (slope > 0) at = line < (double)end ? line : (double)end;
    }
    int64_t size = at > (double)low ? (int64_t)at : low;
    size -= size % onv_size_grain(size);
    if (size >= end) size = end - onv_size_grain(low);
    if (size <= low) size = low + onv_size_grain(low);
    return size < ONV_MAX_BATCH ? size : ONV_MAX_BATCH;
}

void onv_size_narrow(onv_size_facts *s, int goal, int64_t to_better)
{
    bracket b = find_bracket(s, goal);
    int64_t low = b.low != NULL ? b.low->size : 0, before = s->wanted[goal];
    bool reaches = true, is_clear = to_better <= low || decide(s, goal, to_better, &reaches);
    bool ends = b.high != NULL ? b.high->size - low <= onv_size_grain(low) : low == ONV_MAX_BATCH;
    s->found[goal] = reaches ? low : 0;
    s->wanted[goal] = !is_clear ? to_better : !reaches || ends ? 0 : aim(s, goal, &b);
    s->asked[goal] += s->wanted[goal] != before;
}

bool onv_size_helps(const onv_size_facts *s, int goal, int64_t size)
{
    enum { NEAR_PARTS = 32, NEAR_OF_BRACKET = 4 };
    int64_t wanted = s->wanted[goal], gap = wanted > size ? wanted - size : size - wanted;
    bracket b = find_bracket(s, goal);
    if (wanted == 0 || gap == 0 || b.high == NULL) return wanted > 0 && gap <= wanted / NEAR_PARTS;
    int64_t low = b.low != NULL ? b.low->size : 0;
    return size > low && size < b.high->size && gap <= (b.high->size - low) / NEAR_OF_BRACKET;
}

void onv_size_settle(onv_size_facts *s, int goal)
{
    s->found[goal] = s->wanted[goal] = 0;
    for (size_t i = 0; i < s->at.count; i++)
        if (s->at.at[i].is_known && s->at.at[i].reaches[goal] && s->at.at[i].size > s->found[goal])
            s->found[goal] = s->at.at[i].size;
}
