/* Which values share memory: views, in place; and what is on the host. */
#include "graph/storage.h"
#include "support/flow.h"
#include "support/test.h"

static const onv_storage_rules apart = {0};
static const onv_storage_rules views = {.views = true};
static const onv_storage_rules inplace = {.views = true, .inplace = true};

typedef struct shared {
    model *m;
    flow f;
    onv_storages s;
} shared;

static void share_again(shared *s, const onv_storage_rules *rules)
{
    onv_error err = {0};
    if (onv_storages_compute(&s->f.model.arena, &s->f.model, &s->f.live, rules, &s->s, &err) !=
        ONV_OK)
        fail_msg("%s", err.message);
}

/* Takes the model over. */
static void share(shared *s, model *m, const onv_storage_rules *rules)
{
    s->m = m;
    s->s = (onv_storages){0};
    flow_open_model(&s->f, m, NULL);
    share_again(s, rules);
}

static void drop(shared *s)
{
    flow_close(&s->f);
    model_free(s->m);
}

static uint32_t storage_of(const shared *s, const char *name)
{
    return s->s.of_row[flow_row(&s->f, name)];
}

/* --- Who shares with whom ------------------------------------------------------------------------ */

#define VIEWS                                                                                      \
    "in x f32[16]; ints shape 2 1 8; ints axis 1; a = Neg(x) 0; b = Reshape(a shape) 1; "          \
    "c = Squeeze(b axis) 2; d = Unsqueeze(c axis) 3; e = Flatten(d) 4; g = Identity(e) 5; "        \
    "y = Neg(g) 6; out y f32"

/* b reads a, which is read again; c is the first of two that end; small is too small for d; e has half the bytes; y is a result. */
#define IN_PLACE                                                                                   \
    "in x f32[8]; in one f32[1]; a = Relu(x) 0; b = Relu(a) 1; c = Add(a b) 2; "                   \
    "small = Neg(one) 3; d = Add(small c) 4; e = Cast(d) 5 to=10; y = Cast(e) 6 to=1; "            \
    "z = Relu(y) 7; out y f32; out z f32"

/* "a=b": one storage; "a!b": two; "a@0-6": its storage lives from step 0 to step 6. */
static const struct {
    const onv_storage_rules *rules;
    const char *lines, *words;
    size_t count; /* of storages; 0: any */
} rows[] = {
    {&views, VIEWS, "a=b a=c a=d a=e a=g x!a a!y a@0-6", 3},
    {&apart, VIEWS, "a!b", 8},
    /* A view of an output is an output: not in place, as a is what the caller gets. */
    {&inplace,
     "in x f32[16]; ints shape 4 4; a = Neg(x) 0; y = Reshape(a shape) 1; b = Abs(a) 2; "
     "z = Neg(b) 3; out y f32; out z f32",
     "a=y y@0-3 a!b", 0},
    {&inplace, IN_PLACE, "x!a a!b a=c small!d c=d d!e y!z a@0-5", 0},
    {&views, IN_PLACE, "a!c", 0},
    /* A view that is read later keeps it: 2 is the last use of a, and not of its memory, which v joins before b asks for it. */
    {&inplace,
     "in x f32[8]; ints shape 4 2; a = Neg(x) 0; v = Reshape(a shape) 1; b = Relu(a) 2; "
     "c = Neg(v) 3; d = Concat(b b) 4 axis=0; e = Flatten(c) 5 axis=0; y = Concat(d d) 6 axis=0; "
     "out y f32; out e f32",
     "a!b", 0},
};

static bool holds(const shared *s, const char *word)
{
    char a[32], b[32], what;
    unsigned first, last;
    if (sscanf(word, "%31[^@]@%u-%u", a, &first, &last) == 3) {
        const onv_buffer *storage = &s->s.timeline.buffers.at[storage_of(s, a)];
        return storage->first == first && storage->last == last;
    }
    assert_int_equal(sscanf(word, "%31[^=!]%c%31s", a, &what, b), 3);
    bool is_one = storage_of(s, a) == storage_of(s, b);
    return what == '=' ? is_one && storage_of(s, a) != ONV_NO_STORAGE : !is_one;
}

TEST(values_share_by_rules)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        shared s;
        model *m = model_new(17);
        model_add_text(m, rows[i].lines);
        share(&s, m, rows[i].rules);
        char *words = strdup(rows[i].words), *rest = words;
        for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;)
            if (!holds(&s, word)) fail_msg("%s: not %s", rows[i].lines, word);
        free(words);
        if (rows[i].count > 0) assert_int_equal(s.s.timeline.buffers.count, rows[i].count);
        drop(&s);
    }
}

/* --- The host, inputs, copies ------------------------------------------------------------------ */

TEST(shape_arithmetic_stays_on_the_host)
{
    static const int64_t zero = 0, minus = -1;
    shared s;
    model *m = model_read(17, "in x f32[4,6]", "in ids i64[2]");
    model_ints(m, "zero", 1, &zero);
    model_ints(m, "minus", 1, &minus);
    model_add(m, "dims = Shape(x) 0", "rows = Gather(dims zero) 1",
              "shape = Concat(rows minus) 2 axis=0", "y = Reshape(x shape) 3");
    model_node(m, "Add", "4", "ids ids", "sum", ""); /* small integers, but data */
    model_node(m, "Shape", "5", "y", "given", "");   /* a result */
    model_output(m, "y", "f32");
    model_add(m, "out sum i64", "out given i64");
    share(&s, m, &apart);
    bool *is_host;
    assert_int_equal(onv_mark_host_values(&s.f.model, &s.f.live, &is_host, NULL), ONV_OK);
    static const char *const host[] = {"dims", "rows", "shape"};
    for (size_t i = 0; i < 3; i++)
        assert_true(is_host[s.f.live.timeline.buffers.at[flow_row(&s.f, host[i])].value.index]);
    assert_false(is_host[s.f.live.timeline.buffers.at[flow_row(&s.f, "sum")].value.index]);
    assert_false(is_host[s.f.live.timeline.buffers.at[flow_row(&s.f, "given")].value.index]);
    drop(&s);
}

/* --- Properties -------------------------------------------------------------------------------- */

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % below;
}

/* A graph of elementwise operators, views and products over values of three shapes. */
static model *random_model(uint64_t seed)
{
    static const int64_t shapes[3][2] = {{8, 16}, {16, 8}, {32, 4}};
    static const char *const types[] = {"f32[8,16]", "f32[16,8]", "f32[32,4]"};
    uint32_t shape_of[64], n = 3, n_nodes = 4 + draw(&seed, 40);
    bool is_read[64] = {false};
    model *m = model_new(17);
    for (uint32_t i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%u", i);
        model_input(m, name, types[i]);
        shape_of[i] = i;
        snprintf(name, sizeof name, "s%u", i);
        model_ints(m, name, 2, shapes[i]);
    }
    for (; n < n_nodes + 3; n++) {
        char in[32], out[16];
        uint32_t a = draw(&seed, n), b = draw(&seed, n), kind = draw(&seed, 5);
        is_read[a] = true;
        shape_of[n] = shape_of[a];
        snprintf(out, sizeof out, "v%u", n);
        snprintf(in, sizeof in, "v%u", a);
        if (kind == 0) {
            shape_of[n] = draw(&seed, 3);
            snprintf(in, sizeof in, "v%u s%u", a, shape_of[n]);
            model_node(m, "Reshape", out, in, out, "");
        } else if (kind == 1 && shape_of[a] < 2) {
            shape_of[n] = 1 - shape_of[a];
            model_node(m, "Transpose", out, in, out, "");
        } else if (kind == 2 && shape_of[a] == shape_of[b]) {
            is_read[b] = true;
            snprintf(in, sizeof in, "v%u v%u", a, b);
            model_node(m, "Add", out, in, out, "");
        } else {
            model_node(m, kind == 3 ? "Relu" : "Identity", out, in, out, "");
        }
    }
    for (uint32_t i = 3; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%u", i);
        if (!is_read[i] || draw(&seed, 10) == 0) model_output(m, name, "f32");
    }
    return m;
}

static uint64_t peak_by_hand(const shared *s)
{
    uint64_t peak = 0;
    for (uint32_t step = 0; step < s->f.live.timeline.steps.count; step++) {
        uint64_t now = 0;
        for (uint32_t i = 0; i < s->s.timeline.buffers.count; i++)
            if (s->s.timeline.buffers.at[i].first <= step &&
                step <= s->s.timeline.buffers.at[i].last)
                now += s->s.timeline.buffers.at[i].bytes;
        if (now > peak) peak = now;
    }
    return peak;
}

static void check_storages(const shared *s)
{
    const onv_live *live = &s->f.live;
    for (uint32_t i = 0; i < live->timeline.buffers.count; i++) {
        const onv_buffer *row = &live->timeline.buffers.at[i];
        assert_true(s->s.of_row[i] < s->s.timeline.buffers.count);
        const onv_buffer *storage = &s->s.timeline.buffers.at[s->s.of_row[i]];
        assert_true(storage->first <= row->first && row->last <= storage->last);
        assert_true(row->bytes <= storage->bytes);
        assert_true(row->kind != ONV_BUFFER_OUTPUT || storage->kind != ONV_BUFFER_ACTIVATION);
    }
    assert_int_equal(s->s.peak.bytes, peak_by_hand(s));
}

TEST(sharing_never_costs)
{
    uint64_t saved = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        shared s;
        share(&s, random_model(seed), &apart);
        check_storages(&s);
        uint64_t ideal = s.s.peak.bytes;
        assert_int_equal(ideal, s.f.live.peak_bytes);
        share_again(&s, &views);
        check_storages(&s);
        uint64_t with_views = s.s.peak.bytes;
        share_again(&s, &inplace);
        check_storages(&s);
        assert_true(s.s.peak.bytes <= with_views && with_views <= ideal);
        saved += (s.s.peak.bytes < with_views) + (with_views < ideal);
        drop(&s);
    }
    assert_true(saved > 100); /* the graphs have something to share */
}
