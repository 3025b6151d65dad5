/* Views and their strides in a forward pass of the tape, and what copies. */
#include "eager/pass.h"
#include "lower/lower.h"
#include "support/test.h"

/* What is expected here and of the batched products below is what PyTorch 2.15 does: whether a
 * reshape keeps data_ptr(), and what a product allocates beside its result.
 *
 * a (a copy of x) through one node into b, that through a Reshape into c. Whether b shares with a,
 * and c with b. */
typedef struct strides_case {
    const char *input, *op, *extra, *attributes;
    int64_t extra_values[4][4]; /* inputs p q r s, as far as `extra` names them */
    size_t extra_count;
    int64_t shape[4];
    size_t rank;
    bool b_shares, c_shares;
} strides_case;

static void expect_strides(const strides_case *c)
{
    static const char *const names[] = {"p", "q", "r", "s"};
    char inputs[64];
    OWNED_PASS p;
    model *m = model_new(17);
    model_input(m, "x", c->input);
    for (size_t i = 0; i < 4; i++) model_ints(m, names[i], c->extra_count, c->extra_values[i]);
    model_ints(m, "shape", c->rank, c->shape);
    model_node(m, "Neg", "0", "x", "a", "");
    snprintf(inputs, sizeof inputs, "a%s", c->extra);
    model_node(m, c->op, "1", inputs, "b", c->attributes);
    model_add(m, "c = Reshape(b shape) 2", "y = Neg(c) 3", "out y f32");
    pass_run(&p, m, NULL);
    if ((pass_find(&p, "b") == NULL) != c->b_shares) fail_msg("%s of %s: b", c->op, c->input);
    if ((pass_find(&p, "c") == NULL) != c->c_shares) fail_msg("%s of %s: c", c->op, c->input);
}

TEST(a_reshape_copies_where_no_strides_give_it)
{
    static const strides_case cases[] = {
        {"f32[4,6]", "Transpose", "", "", {{0}}, 1, {24}, 1, true, false},
        /* An axis that is split needs no copy, nor does one that stays. */
        {"f32[4,6]", "Transpose", "", "", {{0}}, 1, {6, 2, 2}, 3, true, true},
        {"f32[4,6]", "Transpose", "", "", {{0}}, 1, {3, 2, 4}, 3, true, true},
        {"f32[4,6]", "Transpose", "", "", {{0}}, 1, {2, 12}, 2, true, false},
        /* Axes of size 1 may move. */
        {"f32[1,4,1,6]", "Transpose", "", "perm=[0,2,1,3]", {{0}}, 1, {24}, 1, true, true},
        {"f32[2,4,1,6]", "Transpose", "", "perm=[0,2,1,3]", {{0}}, 1, {48}, 1, true, true},
        {"f32[2,4,3,6]", "Transpose", "", "perm=[0,2,1,3]", {{0}}, 1, {2, 72}, 2, true, false},
        {"f32[2,4,3,6]", "Transpose", "", "perm=[1,0,2,3]", {{0}}, 1, {4, 2, 18}, 3, true, true},
        /* A slice along the first axis that is not 1 stays dense. */
        {"f32[4,6]", "Slice", " p q", "", {{1}, {3}}, 1, {12}, 1, true, true},
        {"f32[1,4,6]", "Slice", " p q r", "", {{1}, {3}, {1}}, 1, {12}, 1, true, true},
        {"f32[4,6]", "Slice", " p q r", "", {{1}, {3}, {1}}, 1, {8}, 1, true, false},
        {"f32[4,6]", "Slice", " p q r", "", {{1}, {3}, {-1}}, 1, {4, 2, 1}, 3, true, true},
        {"f32[4,6]", "Slice", " p q r s", "", {{0}, {4}, {0}, {1}}, 1, {24}, 1, true, true},
        {"f32[4,6]", "Slice", " p q r s", "", {{0}, {4}, {0}, {2}}, 1, {12}, 1, true, false},
        {"f32[24]", "Slice", " p q r s", "", {{0}, {24}, {0}, {2}}, 1, {3, 4}, 2, true, true},
        /* Backwards is a copy, and dense. */
        {"f32[4,6]", "Slice", " p q r s", "", {{3}, {-9}, {0}, {-1}}, 1, {24}, 1, false, true},
        {"f32[4,1]", "Expand", " p", "", {{4, 6}}, 2, {24}, 1, true, false},
        {"f32[4,1]", "Expand", " p", "", {{4, 1}}, 2, {2, 2}, 2, true, true},
        {"f32[4]", "Expand", " p", "", {{6, 4}}, 2, {2, 3, 4}, 3, true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) expect_strides(&cases[i]);
}

TEST(chunks_are_views)
{
    static const int64_t flat[] = {12};
    OWNED_PASS p;
    model *m = model_read(17, "in x f32[4,6]");
    model_ints(m, "flat", 1, flat);
    model_add(m, "a = Neg(x) 0", "b c = Split(a) 1 axis=0", "d e = Split(a) 2 axis=1",
              "c1 = Reshape(c flat) 3", "e1 = Reshape(e flat) 4", "y = Sum(c1 e1) 5", "out y f32");
    pass_run(&p, m, NULL);
    static const char *const shared[] = {"b", "c", "d", "e", "c1"};
    for (size_t i = 0; i < 5; i++) assert_null(pass_find(&p, shared[i]));
    assert_int_equal(pass_find(&p, "e1")->bytes, 48);
    assert_int_equal(p.peak.bytes, 96 + 96 + 48 + 48); /* x, a, e1, y */
}

/* q and k come as given, are transposed and multiplied. Returns what the product copies, in floats. */
static uint64_t copied(const char *q, const char *q_perm, const char *k, const char *k_perm)
{
    pass p;
    uint64_t bytes = 0;
    model *m = model_new(17);
    model_input(m, "q", q);
    model_input(m, "k", k);
    model_node(m, "Transpose", "0", "q", "qt", q_perm);
    model_node(m, "Transpose", "1", "k", "kt", k_perm);
    model_add(m, "y = MatMul(qt kt) 2", "out y f32");
    pass_run(&p, m, NULL);
    for (size_t i = 0; i < p.t.buffers.count; i++)
        if (!onv_is_value(p.t.buffers.at[i].value)) bytes += p.t.buffers.at[i].bytes;
    pass_drop(&p);
    return bytes / 4;
}

TEST(batched_products_copy_what_is_no_batch)
{
    static const char *const heads = "perm=[0,2,1,3]", *const keys = "perm=[0,2,3,1]";
    static const char *const same = "perm=[0,1,2,3]", *const last = "perm=[0,1,3,2]";
    /* [batch, sequence, heads, width] -> heads before the sequence: batch and heads are no longer
     * one axis. 2 x 3 x 5 x 7 each. */
    assert_int_equal(copied("f32[2,5,3,7]", heads, "f32[2,5,3,7]", keys), 2 * 210);
    /* One sample, or one position: they are. */
    assert_int_equal(copied("f32[1,5,3,7]", heads, "f32[1,5,3,7]", keys), 0);
    assert_int_equal(copied("f32[2,1,3,7]", heads, "f32[2,1,3,7]", keys), 0);
    /* The last two axes may be swapped. */
    assert_int_equal(copied("f32[2,3,5,7]", same, "f32[2,3,5,7]", last), 0);
    /* One key for all heads is spread over them. */
    assert_int_equal(copied("f32[2,3,5,7]", same, "f32[2,1,5,7]", last), 2 * 3 * 7 * 5);
    assert_int_equal(copied("f32[2,3,5,7]", same, "f32[1,1,5,7]", last), 0);
    /* Three axes: the batch is one already. A matrix has none. */
    assert_int_equal(copied("f32[5,2,7]", "perm=[1,0,2]", "f32[5,2,7]", "perm=[1,2,0]"), 0);
    assert_int_equal(copied("f32[2,5,7]", "perm=[0,1,2]", "f32[5,7]", "perm=[1,0]"), 0);
}
