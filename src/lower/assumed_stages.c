/* Stages that the forward pass never runs, as those before them: "layer3.1.conv2.weight" has the shape of
 * "layer2.1.conv2.weight", with each dim doubled that doubled from "layer1.1.conv2.weight" on. The first block of a stage
 * reads what the stage before gives, so that all its widths double, but for those that stay in other blocks (of groups, say).
 * Networks of one kind follow another sequence: find_growth(). A stage of which one parameter has no such shape is not assumed at
 * all: widths that grow otherwise are not known. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"
#include "lower/assumed.h"

enum { MAX_NAME = 512, LAST_STAGE = 5, MAX_RANK = 8, MOST_BLOCKS = 64 };

/* What a width is multiplied by from one stage to the next. */
typedef struct factor {
    int64_t times, by;
} factor;

typedef struct growth {
    factor now, before; /* to the stage that is assumed, and to the last one */
    bool shrinks;       /* kernels that halve go on so */
} growth;

typedef enum change { STAYS, GROWS, HALVES } change;

/* "encoder.layer" "3" "." "1" ".conv2.weight" */
typedef struct stage_name {
    const char *name;
    size_t digits, end;        /* of the number of the stage */
    size_t block, block_end;   /* of the number of the block in it, equal: it has none */
    uint32_t number, in_stage; /* both numbers */
} stage_name;

static bool read_number(const char *name, size_t begin, size_t end, uint32_t *number)
{
    *number = 0;
    for (size_t i = begin; i < end; i++) {
        if (!isdigit((unsigned char)name[i]) || *number > 9999) return false;
        *number = *number * 10 + (uint32_t)(name[i] - '0');
    }
    return begin < end;
}

/* The next part of the name at or after `from` that ends in a number, and the block in it. */
static bool next_stage(const char *name, size_t from, stage_name *s)
{
    *s = (stage_name){.name = name};
    bool found = false;
    for (size_t begin = from, end; name[begin] != '\0'; begin = end + 1) {
        end = begin + strcspn(name + begin, ".");
        if (name[end] == '\0') break;
        size_t digits = end;
        while (digits > begin && isdigit((unsigned char)name[digits - 1])) digits--;
        uint32_t number;
        if (!read_number(name, digits, end, &number)) continue;
        if (found && digits == begin) {
            s->block = digits;
            s->block_end = end;
            s->in_stage = number;
            break;
        }
        if (found) continue;
        found = true;
        s->digits = digits;
        s->end = end;
        s->number = number;
        s->block = s->block_end = end;
    }
    return found;
}

/* The listed parameter of that name in another stage, and in another block. */
static const onv_assumed_shape *find(const onv_assumed *a, const stage_name *s, uint32_t number,
                                     uint32_t block)
{
    char text[MAX_NAME], digits[16] = "";
    if (s->block_end > s->block) snprintf(digits, sizeof digits, "%u", block);
    int n = snprintf(text, sizeof text, "%.*s%u%.*s%s%s", (int)s->digits, s->name, number,
                     (int)(s->block - s->end), s->name + s->end, digits, s->name + s->block_end);
    size_t at = n < (int)sizeof text ? onv_listed_find(a->l, text) : SIZE_MAX;
    return at != SIZE_MAX && a->at[at].dims != NULL ? &a->at[at] : NULL;
}

/* In that block, or in one before it that is not the first. */
static const onv_assumed_shape *find_block(const onv_assumed *a, const stage_name *s,
                                           uint32_t number)
{
    const onv_assumed_shape *shape = find(a, s, number, s->in_stage);
    uint32_t block = s->in_stage < MOST_BLOCKS ? s->in_stage : MOST_BLOCKS;
    const uint32_t least = a->is_pyramid ? 0 : 1; /* whose first block is as the others are */
    while (shape == NULL && block > least) shape = find(a, s, number, --block);
    return shape;
}

static bool is_grown(int64_t from, int64_t to, factor f)
{
    int64_t a, b;
    return from > 0 && onv_i64_mul(from, f.times, &a) && onv_i64_mul(to, f.by, &b) && a == b;
}

/* What each dim does from one stage to the next. */
static bool find_changes(const onv_assumed_shape *from, const onv_assumed_shape *to,
                         const growth *g, change changes[MAX_RANK])
{
    if (from == NULL || to == NULL || from->rank != to->rank || to->rank > MAX_RANK) return false;
    for (uint32_t d = 0; d < to->rank; d++) {
        bool halves = g->shrinks && from->dims[d] % 2 == 0 && to->dims[d] == from->dims[d] / 2;
        changes[d] = is_grown(from->dims[d], to->dims[d], g->before) ? GROWS
                     : halves                                        ? HALVES
                                                                     : STAYS;
        if (changes[d] == STAYS && to->dims[d] != from->dims[d]) return false;
    }
    return true;
}

/* Of the first block, or of what stands beside the blocks. */
static bool find_first_changes(const onv_assumed *a, const stage_name *s,
                               const onv_assumed_shape *last, const growth *g,
                               change changes[MAX_RANK])
{
    change in_next[MAX_RANK];
    if (last->rank > MAX_RANK) return false;
    for (uint32_t d = 0; d < last->rank; d++)
        changes[d] = d < 2 && last->dims[d] > 1 ? GROWS : STAYS;
    if (s->block_end == s->block || s->in_stage > 0) return true;
    const onv_assumed_shape *next = find(a, s, s->number - 1, 1);
    if (next == NULL) return true; /* what only the first block has */
    if (!find_changes(find(a, s, s->number - 2, 1), next, g, in_next) || next->rank != last->rank)
        return false;
    for (uint32_t d = 0; d < last->rank; d++)
        if (in_next[d] == STAYS && last->dims[d] == next->dims[d]) changes[d] = STAYS;
    return true;
}

static bool apply(int64_t from, change how, factor f, int64_t *to)
{
    *to = how == HALVES ? from / 2 : from;
    if (how == STAYS || (how == HALVES && from % 2 == 0)) return true;
    if (!onv_i64_mul(from, f.times, to) || *to % f.by != 0) return false;
    *to /= f.by;
    return true;
}

static bool assume_in_stage(onv_assumed *a, const stage_name *s, size_t i, const growth *g,
                            bool *grows)
{
    change changes[MAX_RANK];
    bool has_block = s->block_end > s->block;
    bool is_first = !has_block || (s->in_stage == 0 && !g->shrinks);
    const onv_assumed_shape *last = is_first || s->in_stage == 0
                                        ? find(a, s, s->number - 1, s->in_stage)
                                        : find_block(a, s, s->number - 1);
    if (last == NULL) return false;
    /* What only later stages have, as "downsample.1", is no block. */
    const onv_assumed_shape *from = is_first ? NULL : find_block(a, s, s->number - 2);
    is_first |= from == NULL;
    if (is_first ? !find_first_changes(a, s, last, g, changes)
                 : !find_changes(from, last, g, changes))
        return false;
    int64_t dims[MAX_RANK];
    for (uint32_t d = 0; d < last->rank; d++) {
        /* What stands before the blocks reads the stage before. */
        factor f = !has_block && d == 1 ? g->before : g->now;
        if (!apply(last->dims[d], changes[d], f, &dims[d])) return false;
        *grows |= changes[d] == GROWS && (!is_first || g->shrinks);
    }
    return onv_assume(a, i, last->rank, dims, ONV_BY_STAGE);
}

/* Whether a parameter is listed whose name begins as that of the stage does, with another number of it. */
static bool has_stage(const onv_assumed *a, const stage_name *s, uint32_t number)
{
    char text[MAX_NAME];
    int n = snprintf(text, sizeof text, "%.*s%u.", (int)s->digits, s->name, number);
    if (n >= (int)sizeof text) return false;
    size_t at = onv_listed_lower_bound(a->l, text);
    return at < a->l->signature.count && strncmp(a->l->signature.names[at], text, (size_t)n) == 0;
}

/* False: no usual sequence. Networks whose attention reads fewer and fewer positions by a convolution "sr" (PVT, MiT) have widths of
 * 1, 2, 5 and 8 times the first one, where others double. */
static bool find_growth(const onv_assumed *a, const stage_name *s, growth *g)
{
    const factor twice = {2, 1}, third = {5, 2}, fourth = {8, 5};
    *g = (growth){.now = twice, .before = twice, .shrinks = a->is_pyramid};
    if (!a->is_pyramid) return true;
    uint32_t stage = s->number + (has_stage(a, s, 0) ? 1 : 0);
    g->now = stage == 3 ? third : fourth;
    if (stage == 4) g->before = third;
    return stage == 3 || stage == 4;
}

/* All parameters of the stage: [first, end). False: some have a tensor, so that it runs, or it has no blocks. */
static bool find_stage(const onv_assumed *a, const stage_name *s, size_t *first, size_t *end)
{
    char text[MAX_NAME];
    int n = snprintf(text, sizeof text, "%.*s.", (int)s->end, s->name);
    if (n >= (int)sizeof text) return false;
    bool runs = false, has_blocks = a->is_pyramid;
    *first = onv_listed_lower_bound(a->l, text);
    for (*end = *first; *end < a->l->signature.count; ++*end) {
        const char *name = a->l->signature.names[*end];
        stage_name part;
        if (strncmp(name, text, (size_t)n) != 0) break;
        runs |= a->at[*end].why == ONV_BY_FILE;
        has_blocks |= next_stage(name, s->digits, &part) && part.block_end > part.block;
        if (!onv_work(1)) {
            a->l->emit.status = ONV_ERR_CANCELLED;
            return false;
        }
    }
    return !runs && has_blocks;
}

/* All of it, or nothing. */
static void assume_stage(onv_assumed *a, size_t begin, const stage_name *of)
{
    size_t first = 0, end = 0;
    growth g;
    bool fits = find_growth(a, of, &g), grows = false;
    fits = find_stage(a, of, &first, &end) && fits;
    for (size_t i = first; i < end && fits && a->l->emit.status == ONV_OK; i++) {
        stage_name s;
        if (!onv_work(MOST_BLOCKS)) a->l->emit.status = ONV_ERR_CANCELLED;
        if (a->at[i].why != ONV_BY_NOTHING) continue;
        fits = next_stage(a->l->signature.names[i], begin, &s) &&
               assume_in_stage(a, &s, i, &g, &grows);
    }
    for (size_t i = first; i < end; i++) {
        a->at[i].is_tried = true;
        if (a->at[i].why != ONV_BY_STAGE || (fits && grows)) continue;
        a->at[i] = (onv_assumed_shape){.why = ONV_BY_NOTHING, .is_tried = true};
    }
}

static void assume_stages_of(onv_assumed *a, size_t i)
{
    const char *name = a->l->signature.names[i];
    stage_name s;
    for (size_t from = 0; next_stage(name, from, &s); from = s.end + 1) {
        size_t begin = s.digits;
        while (begin > 0 && name[begin - 1] != '.') begin--;
        if (!onv_work(4)) {
            a->l->emit.status = ONV_ERR_CANCELLED;
            return;
        }
        if (s.number < 2 || !has_stage(a, &s, s.number - 1)) continue;
        a->at[i].is_tried = true;
        bool is_stage = s.number <= LAST_STAGE && has_stage(a, &s, s.number - 2) &&
                        !has_stage(a, &s, LAST_STAGE + 1);
        if (!is_stage) continue;
        assume_stage(a, begin, &s);
        return;
    }
}

/* In the order of their names, so that a stage is known before the next one. */
void onv_assume_stages(onv_assumed *a)
{
    for (size_t i = 0; i < a->l->signature.count; i++)
        a->is_pyramid |= strstr(a->l->signature.names[i], ".attn.sr.") != NULL;
    for (size_t i = 0; i < a->l->signature.count && a->l->emit.status == ONV_OK; i++) {
        if (a->at[i].why != ONV_BY_NOTHING || a->at[i].is_tried) continue;
        if (!onv_work(8)) a->l->emit.status = ONV_ERR_CANCELLED;
        assume_stages_of(a, i);
    }
}
