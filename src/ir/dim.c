#include "ir/dim.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/heap.h"
#include "base/quota.h"
#include "base/strings.h"
#include "ir/dim_expr.h"

void onv_dims_init(onv_dims *pool, onv_arena *arena)
{
    *pool = (onv_dims){.arena = arena, .max_tree = ONV_DIM_MAX_TREE};
    onv_dims_enter(pool, UINT32_MAX);
}

void onv_dims_cleanup(onv_dims *pool)
{
    onv_vec_cleanup(&pool->exprs);
    onv_heap_free(pool->slots);
    onv_heap_free(pool->symbols);
    onv_heap_free(pool->made);
    *pool = (onv_dims){.arena = pool->arena, .max_tree = pool->max_tree};
    onv_dims_enter(pool, UINT32_MAX);
}

bool onv_dims_copy(const onv_dims *from, onv_arena *arena, onv_dims *to)
{
    onv_dims_init(to, arena);
    to->max_tree = from->max_tree;
    if (from->exprs.count == 0) return true;
    to->exprs.at = onv_heap_copy(from->exprs.at, from->exprs.count * sizeof *to->exprs.at);
    to->slots = onv_heap_copy(from->slots, from->n_slots * sizeof *to->slots);
    to->symbols = onv_heap_copy(from->symbols, from->n_symbols * sizeof *to->symbols);
    if (to->exprs.at == NULL || to->slots == NULL || to->symbols == NULL) {
        onv_dims_cleanup(to);
        return false;
    }
    to->exprs.count = to->exprs.capacity = from->exprs.count;
    to->n_slots = from->n_slots;
    to->n_symbols = to->symbol_capacity = from->n_symbols;
    return true;
}

int64_t onv_sat_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (a == ONV_DIM_INFINITY_RAW || b == ONV_DIM_INFINITY_RAW) return ONV_DIM_INFINITY_RAW;
    if (a == -ONV_DIM_INFINITY_RAW || b == -ONV_DIM_INFINITY_RAW) return -ONV_DIM_INFINITY_RAW;
    sum = a + b; /* both below 2^61: cannot wrap */
    return onv_dim_const(sum).raw;
}

int64_t onv_sat_mul(int64_t a, int64_t b)
{
    int64_t product;
    if (a == 0 || b == 0) return 0;
    if (__builtin_mul_overflow(a, b, &product))
        return (a < 0) == (b < 0) ? ONV_DIM_INFINITY_RAW : -ONV_DIM_INFINITY_RAW;
    return onv_dim_const(product).raw;
}

/* --- Interning --------------------------------------------------------------------------------- */

/* Every part goes through the keyed hash: parts that were only added or xor-ed could make up for each other. */
static uint64_t hash_expr(onv_dim_kind kind, int64_t c, const onv_dim_term *terms, uint32_t n)
{
    static_assert(sizeof *terms == sizeof terms->coef + sizeof terms->d, "terms have no padding");
    uint64_t head = onv_hash_word(onv_hash_word((uint64_t)kind + 1) + (uint64_t)c);
    return onv_hash_bytes(terms, n * sizeof *terms, head);
}

static bool same_expr(const onv_dim_expr *e, onv_dim_kind kind, int64_t c,
                      const onv_dim_term *terms, uint32_t n)
{
    if (e->kind != kind || e->c != c || e->n != n) return false;
    for (uint32_t i = 0; i < n; i++)
        if (e->terms[i].coef != terms[i].coef || e->terms[i].d.raw != terms[i].d.raw) return false;
    return true;
}

static bool grow_table(onv_dims *pool)
{
    uint32_t n_slots = pool->n_slots == 0 ? 64 : pool->n_slots * 2;
    uint32_t *slots = onv_heap_calloc(n_slots, sizeof *slots);
    if (slots == NULL) return false;
    for (uint32_t i = 0; i < pool->exprs.count; i++) {
        uint32_t slot = (uint32_t)pool->exprs.at[i].hash & (n_slots - 1);
        while (slots[slot] != 0) slot = (slot + 1) & (n_slots - 1);
        slots[slot] = i + 1;
    }
    onv_heap_free(pool->slots);
    pool->slots = slots;
    pool->n_slots = n_slots;
    return true;
}

static bool make_room(onv_dims *pool)
{
    return pool->exprs.count < UINT32_MAX / 2 && onv_vec_reserve(&pool->exprs, 1) &&
           ((pool->exprs.count + 1) * 2 <= pool->n_slots || grow_table(pool));
}

static onv_dim append(onv_dims *pool, const onv_dim_expr *e)
{
    if (!make_room(pool)) {
        pool->failed = true;
        return ONV_DIM_UNKNOWN;
    }
    uint32_t slot = (uint32_t)e->hash & (pool->n_slots - 1);
    while (pool->slots[slot] != 0) slot = (slot + 1) & (pool->n_slots - 1);
    pool->exprs.at[pool->exprs.count] = *e;
    pool->slots[slot] = (uint32_t)++pool->exprs.count;
    return (onv_dim){ONV_DIM_INFINITY_RAW + (int64_t)pool->exprs.count};
}

int64_t onv_dim_bound_of_sum(const onv_dims *pool, int64_t c, const onv_dim_term *terms, uint32_t n,
                             bool greatest)
{
    for (uint32_t i = 0; i < n; i++) {
        bool is_high = (terms[i].coef > 0) == greatest;
        int64_t part =
            is_high ? onv_dim_high_bound(pool, terms[i].d) : onv_dim_low_bound(pool, terms[i].d);
        c = onv_sat_add(c, onv_sat_mul(terms[i].coef, part));
    }
    return c;
}

static void bounds_of_product(const onv_dims *pool, onv_dim_expr *e)
{
    e->low = e->high = 1;
    for (uint32_t i = 0; i < e->n; i++) {
        int64_t low = onv_dim_low_bound(pool, e->terms[i].d);
        if (low < 0) {
            e->low = -ONV_DIM_INFINITY_RAW;
            e->high = ONV_DIM_INFINITY_RAW;
            return;
        }
        e->low = onv_sat_mul(e->low, low);
        e->high = onv_sat_mul(e->high, onv_dim_high_bound(pool, e->terms[i].d));
    }
}

/* A divisor is a size that is not 0, so it is at least 1. */
static void bounds_of_floor(const onv_dims *pool, onv_dim_expr *e)
{
    int64_t al = onv_dim_low_bound(pool, e->terms[0].d),
            ah = onv_dim_high_bound(pool, e->terms[0].d);
    int64_t bl = onv_dim_low_bound(pool, e->terms[1].d),
            bh = onv_dim_high_bound(pool, e->terms[1].d);
    e->low = -ONV_DIM_INFINITY_RAW;
    e->high = ONV_DIM_INFINITY_RAW;
    if (bl < 0 || bh < 1) return; /* a divisor that can only be 0 bounds nothing */
    if (bl == 0) bl = 1;
    if (al >= 0)
        e->low = onv_dim_fits(bh) && onv_dim_fits(al) ? al / bh : 0;
    else if (onv_dim_fits(al))
        e->low = onv_i64_floordiv(al, bl);
    if (ah < 0)
        e->high = -1;
    else if (onv_dim_fits(ah))
        e->high = ah / bl;
}

static void bounds_of_mod(const onv_dims *pool, onv_dim_expr *e)
{
    int64_t bl = onv_dim_low_bound(pool, e->terms[1].d),
            bh = onv_dim_high_bound(pool, e->terms[1].d);
    e->low = bl >= 0 ? 0 : -ONV_DIM_INFINITY_RAW;
    e->high = bh >= 1 ? onv_sat_add(bh, -1) : 0;
}

static void bounds_of_extremum(const onv_dims *pool, onv_dim_expr *e)
{
    e->low = onv_dim_low_bound(pool, e->terms[0].d);
    e->high = onv_dim_high_bound(pool, e->terms[0].d);
    for (uint32_t i = 1; i < e->n; i++) {
        int64_t low = onv_dim_low_bound(pool, e->terms[i].d),
                high = onv_dim_high_bound(pool, e->terms[i].d);
        bool wins_low = e->kind == ONV_DIM_MIN ? low < e->low : low > e->low;
        bool wins_high = e->kind == ONV_DIM_MIN ? high < e->high : high > e->high;
        if (wins_low) e->low = low;
        if (wins_high) e->high = high;
    }
}

static void set_bounds(const onv_dims *pool, onv_dim_expr *e)
{
    switch ((onv_dim_kind)e->kind) {
    case ONV_DIM_SYMBOL: break;
    case ONV_DIM_SUM:
        e->low = onv_dim_bound_of_sum(pool, e->c, e->terms, e->n, false);
        e->high = onv_dim_bound_of_sum(pool, e->c, e->terms, e->n, true);
        break;
    case ONV_DIM_PRODUCT: bounds_of_product(pool, e); break;
    case ONV_DIM_FLOOR: bounds_of_floor(pool, e); break;
    case ONV_DIM_MOD: bounds_of_mod(pool, e); break;
    case ONV_DIM_MIN:
    case ONV_DIM_MAX: bounds_of_extremum(pool, e); break;
    }
}

onv_dim onv_dim_intern(onv_dims *pool, onv_dim_kind kind, int64_t c, const onv_dim_term *terms,
                       uint32_t n)
{
    onv_work(1 + n);
    uint64_t hash = hash_expr(kind, c, terms, n);
    if (pool->n_slots > 0) {
        uint32_t slot = (uint32_t)hash & (pool->n_slots - 1);
        for (; pool->slots[slot] != 0; slot = (slot + 1) & (pool->n_slots - 1)) {
            uint32_t index = pool->slots[slot] - 1;
            if (pool->exprs.at[index].hash == hash &&
                same_expr(&pool->exprs.at[index], kind, c, terms, n))
                return (onv_dim){ONV_DIM_INFINITY_RAW + 1 + index};
        }
    }
    onv_dim_expr e = {.kind = (uint8_t)kind, .n = n, .tree_size = 1, .hash = hash, .c = c};
    e.bound = ONV_DIM_UNKNOWN;
    bool is_atom = kind != ONV_DIM_SUM && kind != ONV_DIM_PRODUCT;
    for (uint32_t i = 0; i < n; i++) {
        if (!onv_dim_is_expr(terms[i].d)) continue;
        const onv_dim_expr *child = onv_dim_get(pool, terms[i].d);
        uint8_t depth = (uint8_t)(child->depth + is_atom);
        if (depth > e.depth) e.depth = depth;
        e.tree_size += child->tree_size;
        e.data |= child->data;
    }
    if (e.depth > ONV_DIM_MAX_DEPTH || e.tree_size > pool->max_tree) {
        pool->too_large++;
        return ONV_DIM_UNKNOWN;
    }
    e.terms = onv_arena_copy(pool->arena, terms, n * sizeof *terms);
    if (e.terms == NULL) {
        pool->failed = true;
        return ONV_DIM_UNKNOWN;
    }
    set_bounds(pool, &e);
    return append(pool, &e);
}

/* --- Symbols ----------------------------------------------------------------------------------- */

/* The first symbol of that name; unknown where there is none. */
static onv_dim find_symbol(const onv_dims *pool, const char *name, uint64_t hash)
{
    if (pool->n_slots == 0) return ONV_DIM_UNKNOWN;
    uint32_t slot = (uint32_t)hash & (pool->n_slots - 1);
    for (; pool->slots[slot] != 0; slot = (slot + 1) & (pool->n_slots - 1)) {
        const onv_dim_expr *e = &pool->exprs.at[pool->slots[slot] - 1];
        if (e->kind == ONV_DIM_SYMBOL && e->hash == hash && strcmp(e->name, name) == 0)
            return (onv_dim){ONV_DIM_INFINITY_RAW + pool->slots[slot]};
    }
    return ONV_DIM_UNKNOWN;
}

onv_dim onv_dim_symbol_named(const onv_dims *pool, const char *name)
{
    return find_symbol(pool, name, onv_hash_bytes(name, strlen(name), ONV_DIM_SYMBOL));
}

static onv_dim new_symbol(onv_dims *pool, const char *name, bool data, onv_dim bound)
{
    if (pool->n_symbols == pool->symbol_capacity) {
        uint32_t capacity = pool->symbol_capacity == 0 ? 16 : pool->symbol_capacity * 2;
        uint32_t *symbols = onv_heap_realloc(pool->symbols, capacity * sizeof *symbols);
        if (symbols == NULL) {
            pool->failed = true;
            return ONV_DIM_UNKNOWN;
        }
        pool->symbols = symbols;
        pool->symbol_capacity = capacity;
    }
    onv_dim_expr e = {.kind = ONV_DIM_SYMBOL, .tree_size = 1, .data = data};
    e.symbol = pool->n_symbols;
    e.hash = onv_hash_bytes(name, strlen(name), ONV_DIM_SYMBOL);
    /* A body that runs again makes the same name again: under one hash, all would be one chain. */
    if (data && onv_dim_is_known(find_symbol(pool, name, e.hash)))
        e.hash = onv_hash_u64(e.hash + e.symbol);
    e.name = name;
    e.bound = bound;
    e.high = ONV_DIM_INFINITY_RAW;
    if (data && onv_dim_is_known(bound)) e.high = onv_dim_high_bound(pool, bound);
    onv_dim symbol = append(pool, &e);
    if (onv_dim_is_known(symbol))
        pool->symbols[pool->n_symbols++] = (uint32_t)pool->exprs.count - 1;
    return symbol;
}

bool onv_dim_name_is_anonymous(const char *name)
{
    static const char *const words[] = {"none", "unk", "unknown"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(name, words[i]) == 0) return true;
    for (; *name != '\0'; name++)
        if (isalpha((unsigned char)*name) || *name == '_' || (unsigned char)*name >= 0x80)
            return false;
    return true;
}

onv_dim onv_dim_symbol(onv_dims *pool, const char *name)
{
    uint64_t hash = onv_hash_bytes(name, strlen(name), ONV_DIM_SYMBOL);
    onv_dim found = find_symbol(pool, name, hash);
    if (onv_dim_is_known(found)) return found;
    const char *copy = onv_arena_strndup(pool->arena, name, strlen(name));
    if (copy == NULL) {
        pool->failed = true;
        return ONV_DIM_UNKNOWN;
    }
    return new_symbol(pool, copy, false, ONV_DIM_UNKNOWN);
}

/* How many symbols of that kind the node has made; counts one more. */
static uint32_t count_kind(onv_dim_scope *scope, const char *name)
{
    for (uint32_t i = 0; i < scope->n_kinds; i++)
        if (strcmp(scope->kinds[i].name, name) == 0) return scope->kinds[i].count++;
    if (scope->n_kinds == ONV_DIM_MAX_FRESH_KINDS)
        return scope->kinds[ONV_DIM_MAX_FRESH_KINDS - 1].count++;
    scope->kinds[scope->n_kinds].name = name;
    scope->kinds[scope->n_kinds++].count = 1;
    return 0;
}

static onv_dim make_fresh(onv_dims *pool, const char *name, uint32_t place, onv_dim bound,
                          bool varying)
{
    const char *full;
    if (pool->scope.number == UINT32_MAX)
        full = onv_arena_printf(pool->arena, "%s#%u", name, pool->n_symbols);
    else if (place == 0)
        full = onv_arena_printf(pool->arena, "%s#%u", name, pool->scope.number);
    else
        full = onv_arena_printf(pool->arena, "%s#%u.%u", name, pool->scope.number, place);
    if (full == NULL) {
        pool->failed = true;
        return ONV_DIM_UNKNOWN;
    }
    for (uint32_t i = 0; i < pool->n_given && !varying; i++) {
        onv_dim_given *given = &pool->given[i];
        if (strcmp(given->name, full) != 0) continue;
        onv_dim size = onv_dim_const(given->size);
        given->used = true;
        if (onv_dim_is_known(bound) && onv_dim_always_lt(pool, bound, size)) {
            given->too_large = true;
            given->bound = bound;
        }
        return size;
    }
    onv_dim symbol = new_symbol(pool, full, true, bound);
    if (onv_dim_is_known(symbol)) pool->exprs.at[pool->exprs.count - 1].varying = varying;
    return symbol;
}

onv_dim onv_dim_fresh(onv_dims *pool, const char *name, onv_dim bound)
{
    return make_fresh(pool, name, count_kind(&pool->scope, name), bound, false);
}

onv_dim onv_dim_fresh_at(onv_dims *pool, const char *name, uint32_t place, onv_dim bound)
{
    return make_fresh(pool, name, place, bound, false);
}

onv_dim onv_dim_fresh_varying(onv_dims *pool, const char *name, onv_dim bound)
{
    return make_fresh(pool, name, count_kind(&pool->scope, name), bound, true);
}

onv_dim onv_dim_given_size(const onv_dims *pool, const char *name)
{
    size_t length = strlen(name);
    for (uint32_t i = 0; i < pool->n_given; i++) {
        const char *given = pool->given[i].name;
        if (strncmp(given, name, length) != 0 || given[length] != '#') continue;
        char *end;
        unsigned long number = strtoul(given + length + 1, &end, 10);
        if (*end == '\0' && number == pool->scope.number) return onv_dim_const(pool->given[i].size);
    }
    return ONV_DIM_UNKNOWN;
}

bool onv_dim_is_bindable(const onv_dims *pool, onv_dim symbol)
{
    if (!onv_dim_is_symbol(pool, symbol)) return false;
    const onv_dim_expr *e = onv_dim_get(pool, symbol);
    return e->data && !e->varying;
}

bool onv_dim_is_symbol(const onv_dims *pool, onv_dim d)
{
    return onv_dim_is_expr(d) && onv_dim_get(pool, d)->kind == ONV_DIM_SYMBOL;
}

const char *onv_dim_symbol_name(const onv_dims *pool, onv_dim symbol)
{
    return onv_dim_is_symbol(pool, symbol) ? onv_dim_get(pool, symbol)->name : NULL;
}

uint32_t onv_dim_symbol_index(const onv_dims *pool, onv_dim symbol)
{
    return onv_dim_is_symbol(pool, symbol) ? onv_dim_get(pool, symbol)->symbol : UINT32_MAX;
}

onv_dim onv_dim_symbol_at(const onv_dims *pool, uint32_t index)
{
    if (index >= pool->n_symbols) return ONV_DIM_UNKNOWN;
    return (onv_dim){ONV_DIM_INFINITY_RAW + 1 + pool->symbols[index]};
}
