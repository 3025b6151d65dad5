/* Dim expressions: normal forms, division, order, bounds, text; and the property that everything
 * agrees with plain arithmetic under random bindings. */

#include "ir/dim.h"
#include "support/test.h"

typedef struct fixture {
    onv_arena arena;
    onv_dims pool;
    onv_dim a, b, c;
} fixture;

static int setup(void **state)
{
    static fixture f;
    onv_arena_init(&f.arena, SIZE_MAX);
    onv_dims_init(&f.pool, &f.arena);
    f.a = onv_dim_symbol(&f.pool, "a");
    f.b = onv_dim_symbol(&f.pool, "b");
    f.c = onv_dim_symbol(&f.pool, "c");
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    onv_dims_cleanup(&f->pool);
    onv_arena_cleanup(&f->arena);
    return 0;
}

static onv_dim num(int64_t value)
{
    return onv_dim_const(value);
}

#define SAME(x, y)    assert_int_equal((x).raw, (y).raw)
#define TEXT(d, text) assert_string_equal(onv_dim_text(&f->pool, &f->arena, d), text)
#define ADD(x, y)     onv_dim_add(&f->pool, x, y)
#define SUB(x, y)     onv_dim_sub(&f->pool, x, y)
#define MUL(x, y)     onv_dim_mul(&f->pool, x, y)
#define DIV(x, y)     onv_dim_floordiv(&f->pool, x, y)
#define EXACT(x, y)   onv_dim_exact_div(&f->pool, x, y)
#define MOD(x, y)     onv_dim_mod(&f->pool, x, y)
#define MIN(x, y)     onv_dim_min(&f->pool, x, y)
#define MAX(x, y)     onv_dim_max(&f->pool, x, y)

TEST_WITH(equal_forms_are_the_same_word, setup, teardown)
{
    fixture *f = *state;
    SAME(onv_dim_symbol(&f->pool, "a"), f->a);
    SAME(ADD(f->a, f->b), ADD(f->b, f->a));
    SAME(MUL(ADD(f->a, f->b), num(3)), ADD(MUL(f->b, num(3)), MUL(num(3), f->a)));
    SAME(MUL(ADD(f->a, num(1)), SUB(f->a, num(1))), SUB(MUL(f->a, f->a), num(1)));
    SAME(SUB(ADD(f->a, f->b), f->b), f->a);
    SAME(SUB(f->a, f->a), num(0));
    SAME(MUL(f->a, num(0)), num(0));
}

TEST_WITH(text_reads_like_an_engineer_writes, setup, teardown)
{
    fixture *f = *state;
    TEXT(num(224), "224");
    TEXT(ADD(f->a, f->b), "a + b");
    TEXT(MUL(f->a, num(64)), "a*64");
    TEXT(MUL(MUL(f->a, f->b), num(12)), "a*b*12");
    TEXT(ADD(DIV(SUB(f->a, num(1)), num(2)), num(1)), "floor((a + 1)/2)");
    TEXT(SUB(num(5), f->a), "-a + 5");
    TEXT(MIN(f->a, num(7)), "min(7, a)");
    TEXT(ONV_DIM_UNKNOWN, "?");
}

TEST_WITH(division_is_exact_where_it_can_be, setup, teardown)
{
    fixture *f = *state;
    SAME(EXACT(MUL(f->a, num(768)), num(12)), MUL(f->a, num(64)));
    SAME(EXACT(MUL(MUL(f->a, f->b), num(768)), MUL(f->a, num(12))), MUL(f->b, num(64)));
    onv_dim sum = ADD(f->a, f->b);
    SAME(EXACT(MUL(MUL(f->c, sum), num(768)), MUL(sum, num(64))), MUL(f->c, num(12)));
    SAME(EXACT(MUL(sum, ADD(f->c, num(2))), ADD(f->c, num(2))), sum);
    assert_false(onv_dim_is_known(EXACT(MUL(f->a, num(7)), num(2))));
    assert_false(onv_dim_is_known(EXACT(f->a, f->b)));
    assert_false(onv_dim_is_known(EXACT(num(1), num(0))));
}

/* Nothing sensible, but files may say so: a divisor that is known to be 0. */
TEST_WITH(divisors_that_can_only_be_0, setup, teardown)
{
    fixture *f = *state;
    onv_dim zero = DIV(num(1), ADD(f->b, num(2)));
    onv_dim values[] = {num(7), num(3), num(0)};
    onv_dim undefined[] = {DIV(f->a, zero), DIV(SUB(f->a, num(9)), zero), MOD(f->a, zero)};
    for (size_t i = 0; i < sizeof undefined / sizeof undefined[0]; i++)
        assert_false(onv_dim_is_known(onv_dim_eval(&f->pool, undefined[i], values)));
}

TEST_WITH(floors_fold_together, setup, teardown)
{
    fixture *f = *state;
    /* Two convolutions of stride 2 and "same" padding: a quarter, rounded up. */
    onv_dim once = ADD(DIV(SUB(f->a, num(1)), num(2)), num(1));
    onv_dim twice = ADD(DIV(SUB(once, num(1)), num(2)), num(1));
    SAME(twice, DIV(ADD(f->a, num(3)), num(4)));
    SAME(DIV(ADD(MUL(f->a, num(4)), num(3)), num(4)), f->a);
    SAME(DIV(MUL(f->a, num(6)), num(4)), DIV(MUL(f->a, num(3)), num(2)));
    SAME(onv_dim_ceildiv(&f->pool, f->a, num(3)), DIV(ADD(f->a, num(2)), num(3)));
    SAME(DIV(num(-7), num(2)), num(-4));
    SAME(MOD(num(-7), num(2)), num(1));
    SAME(MOD(MUL(f->a, num(8)), num(4)), num(0));
    SAME(MOD(ADD(MUL(f->a, num(8)), num(5)), num(4)), num(1));
}

TEST_WITH(extrema_use_what_is_certain, setup, teardown)
{
    fixture *f = *state;
    SAME(MAX(num(0), f->a), f->a);
    SAME(MIN(num(0), f->a), num(0));
    SAME(MIN(f->a, ADD(f->a, f->b)), f->a);
    SAME(MIN(ONV_DIM_INFINITY, f->a), f->a);
    SAME(MAX(f->a, MIN(f->a, f->b)), f->a);
    SAME(MIN(MIN(f->a, f->b), f->c), MIN(f->b, MIN(f->c, f->a)));
    SAME(MAX(MAX(f->a, f->b), f->b), MAX(f->a, f->b));
    assert_true(onv_dim_always_lt(&f->pool, f->a, ADD(f->a, num(1))));
    assert_false(onv_dim_always_le(&f->pool, f->a, f->b));
    assert_true(onv_dim_always_ne(&f->pool, ADD(f->a, num(1)), num(0)));
}

TEST_WITH(infinities_are_slice_sentinels, setup, teardown)
{
    fixture *f = *state;
    assert_true(onv_dim_is_infinite(num(INT64_MAX)));
    SAME(MIN(num(INT64_MAX), num(5)), num(5));
    SAME(MAX(num(INT64_MIN), num(5)), num(5));
    SAME(ADD(num(INT64_MAX), f->a), ONV_DIM_INFINITY);
    assert_false(onv_dim_is_known(ADD(num(INT64_MAX), num(INT64_MIN))));
}

TEST_WITH(overflow_is_unknown_and_counted, setup, teardown)
{
    fixture *f = *state;
    onv_dim big = num((int64_t)1 << 40);
    assert_false(onv_dim_is_known(MUL(big, big)));
    assert_int_equal(f->pool.overflows, 1);
}

TEST_WITH(growth_is_bounded, setup, teardown)
{
    fixture *f = *state;
    onv_dim d = f->a;
    for (int i = 0; i < 40 && onv_dim_is_known(d); i++) d = MUL(ADD(d, f->b), ADD(d, f->c));
    assert_false(onv_dim_is_known(d));
    assert_true(f->pool.too_large > 0);
    d = f->a;
    for (int i = 0; i < 100 && onv_dim_is_known(d); i++)
        d = DIV(MUL(ADD(d, f->b), f->c), ADD(f->a, num(i + 2)));
    assert_false(onv_dim_is_known(d));
}

TEST_WITH(data_symbols_count_their_bound, setup, teardown)
{
    fixture *f = *state;
    onv_dim n = onv_dim_fresh(&f->pool, "nonzero", MUL(f->a, num(10)));
    assert_true(onv_dim_has_bound(&f->pool, MUL(n, num(2))));
    SAME(onv_dim_substitute_bounds(&f->pool, ADD(MUL(n, num(2)), f->b)),
         ADD(MUL(f->a, num(20)), f->b));
    SAME(onv_dim_substitute_bounds(&f->pool, SUB(f->a, n)), f->a);
    onv_dim unbounded = onv_dim_fresh(&f->pool, "split", ONV_DIM_UNKNOWN);
    assert_false(onv_dim_is_known(onv_dim_substitute_bounds(&f->pool, unbounded)));
}

/* A body that runs again makes symbols of the same name again. */
TEST_WITH(equal_names_are_no_chain, setup, teardown)
{
    fixture *f = *state;
    for (uint32_t i = 0; i < 200000; i++) {
        onv_dims_enter(&f->pool, 3);
        assert_true(onv_dim_is_known(onv_dim_fresh(&f->pool, "trips", ONV_DIM_UNKNOWN)));
    }
    onv_dim first = onv_dim_symbol(&f->pool, "trips#3");
    assert_true(onv_dim_is_bindable(&f->pool, first));
}

/* --- Property: symbolic then evaluated == evaluated all along ---------------------------------- */

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

typedef struct pair {
    onv_dim form;
    int64_t value;
} pair;

static int64_t floordiv(int64_t x, int64_t y)
{
    int64_t q = x / y;
    return x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q;
}

static pair combine(fixture *f, uint64_t op, pair x, pair y)
{
    switch (op % 7) {
    case 0: return (pair){ADD(x.form, y.form), x.value + y.value};
    case 1: return (pair){SUB(x.form, y.form), x.value - y.value};
    case 2: return (pair){MUL(x.form, y.form), x.value * y.value};
    case 3: return (pair){MIN(x.form, y.form), x.value < y.value ? x.value : y.value};
    case 4: return (pair){MAX(x.form, y.form), x.value > y.value ? x.value : y.value};
    case 5: /* a divisor is a size that is not 0 */
        if (y.value <= 0 || onv_dim_lower(&f->pool, y.form).raw < 0) return x;
        return (pair){DIV(x.form, y.form), floordiv(x.value, y.value)};
    default:
        if (y.value <= 0 || onv_dim_lower(&f->pool, y.form).raw < 0) return x;
        return (pair){MOD(x.form, y.form), x.value - y.value * floordiv(x.value, y.value)};
    }
}

/* The machine that readers of the JSON build. */
typedef struct machine {
    const fixture *f;
    const onv_dim *values;
    int64_t stack[64];
    int height;
} machine;

static void run_op(void *context, onv_dim_op op, onv_dim d)
{
    machine *m = context;
    if (op == ONV_DIM_OP_NUMBER || op == ONV_DIM_OP_SYMBOL) {
        assert_true(m->height < 64);
        int symbol = d.raw == m->f->a.raw ? 0 : d.raw == m->f->b.raw ? 1 : 2;
        m->stack[m->height++] = op == ONV_DIM_OP_NUMBER ? d.raw : m->values[symbol].raw;
        return;
    }
    assert_true(m->height >= 2);
    int64_t y = m->stack[--m->height], *x = &m->stack[m->height - 1];
    switch (op) {
    case ONV_DIM_OP_ADD: *x += y; break;
    case ONV_DIM_OP_MULTIPLY: *x *= y; break;
    case ONV_DIM_OP_FLOOR_DIVIDE: *x = floordiv(*x, y); break;
    case ONV_DIM_OP_MODULO: *x -= y * floordiv(*x, y); break;
    case ONV_DIM_OP_MIN: *x = *x < y ? *x : y; break;
    default: *x = *x > y ? *x : y; break;
    }
}

static int64_t run_ops(const fixture *f, onv_dim form, const onv_dim *values)
{
    machine m = {.f = f, .values = values};
    onv_dim_each_op(&f->pool, form, run_op, &m);
    assert_int_equal(m.height, 1);
    return m.stack[0];
}

/* Parts of a sum that make up for each other do not make up for each other in its hash. */
TEST_WITH(sums_alike_are_no_chain, setup, teardown)
{
    fixture *f = *state;
    uint32_t run = 0, longest = 0;
    for (int64_t i = 1; i <= 1 << 16; i++)
        assert_true(onv_dim_is_known(ADD(MUL(f->a, num(64 * i)), num(64 * i))));
    for (uint32_t i = 0; i < f->pool.n_slots; i++) {
        run = f->pool.slots[i] != 0 ? run + 1 : 0;
        if (run > longest) longest = run;
    }
    assert_in_range(longest, 1, 100); /* by chance about 25: the table is less than half full */
}

TEST_WITH(evaluation_agrees_with_arithmetic, setup, teardown)
{
    fixture *f = *state;
    uint64_t seed = 42;
    int checked = 0;
    for (int round = 0; round < 3000; round++) {
        onv_dim values[3];
        for (int i = 0; i < 3; i++) values[i] = num((int64_t)(next(&seed) % 40) + 1);
        pair stack[8] = {{f->a, values[0].raw}, {f->b, values[1].raw}, {f->c, values[2].raw}};
        for (int i = 3; i < 8; i++)
            stack[i].form = num(stack[i].value = (int64_t)(next(&seed) % 9));
        for (int step = 0; step < 6; step++) {
            pair x = stack[next(&seed) % 8], y = stack[next(&seed) % 8];
            stack[next(&seed) % 8] = combine(f, next(&seed), x, y);
        }
        for (int i = 0; i < 8; i++) {
            if (!onv_dim_is_known(stack[i].form)) continue;
            onv_dim got = onv_dim_eval(&f->pool, stack[i].form, values);
            if (got.raw != stack[i].value)
                fail_msg("round %d: %s is %lld, not %lld", round,
                         onv_dim_text(&f->pool, &f->arena, stack[i].form), (long long)got.raw,
                         (long long)stack[i].value);
            assert_true(run_ops(f, stack[i].form, values) == stack[i].value);
            assert_true(onv_dim_lower(&f->pool, stack[i].form).raw <= stack[i].value);
            assert_true(onv_dim_upper(&f->pool, stack[i].form).raw >= stack[i].value);
            checked++;
        }
    }
    assert_true(checked > 20000);
}

TEST_WITH(strides_of_one_size_compare, setup, teardown)
{
    fixture *f = *state;
    onv_dim half = DIV(f->a, num(2)), quarter = DIV(f->a, num(4));
    assert_false(onv_dim_always_le(&f->pool, MUL(quarter, num(2)), half));
    assert_true(onv_dim_never_above(&f->pool, MUL(quarter, num(2)), half));
    assert_false(onv_dim_never_above(&f->pool, MUL(quarter, num(3)), half));
    assert_true(
        onv_dim_never_above(&f->pool, MUL(MUL(half, DIV(f->b, num(2))), num(4)), MUL(f->a, f->b)));
    assert_false(onv_dim_never_above(&f->pool, f->a, MUL(half, num(2)))); /* an odd one */
    assert_true(onv_dim_never_above(&f->pool, MIN(f->a, num(7)), f->a));
    assert_false(onv_dim_never_above(&f->pool, f->a, MUL(f->a, f->b))); /* b may be 0 */
    bool from_zero[3] = {false};
    onv_dim product = onv_dim_from_one(&f->pool, MUL(f->a, f->b), from_zero);
    assert_true(
        onv_dim_never_above(&f->pool, onv_dim_from_one(&f->pool, f->a, from_zero), product));
    from_zero[1] = true;
    TEXT(onv_dim_from_one(&f->pool, MUL(f->a, f->b), from_zero), "b + a*b");
}

TEST_WITH(a_size_overtakes_from_somewhere_on, setup, teardown)
{
    fixture *f = *state;
    onv_dim symbol, linear = MUL(MUL(f->a, f->b), num(800));
    onv_dim square = MUL(MUL(f->a, MUL(f->b, f->b)), num(3));
    int64_t from;
    assert_true(onv_dim_overtakes(&f->pool, linear, square, &symbol, &from));
    SAME(symbol, f->b);
    assert_int_equal(from, 267); /* 3 * 266 < 800 < 3 * 267 */
    assert_false(onv_dim_overtakes(&f->pool, square, linear, &symbol, &from));
    assert_false(onv_dim_overtakes(&f->pool, linear, MUL(f->c, num(5)), &symbol, &from));
    assert_false(onv_dim_overtakes(&f->pool, f->a, ADD(f->a, f->b), &symbol, &from));
}
