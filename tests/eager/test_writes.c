/* Calls that write into a part of a tensor, or roll, pad and bound one: what each makes. The figures are those that the CUDA
 * build of PyTorch 2.15 asked its allocator for, over a substitute for the driver, of networks like these. */
#include "eager/trainer.h"
#include "lower/lower.h"
#include "support/capture.h"
#include "support/test.h"

/* a and b are [4, 6], of products that keep x of [4, 8] for two weights. */
enum { A = 4 * 6 * 4, X = 4 * 8 * 4, PART = 4 * 2 * 4, MASK = 4 * 6 };

static model *begin(void)
{
    model *m =
        model_read(18, "in x f32[4,8]", "weight w f32[8,6]", "weight v f32[8,6]",
                   "weight u f32[8,2]", "role w PARAMETER", "role v PARAMETER", "role u PARAMETER",
                   "a = MatMul(x w) first", "b = MatMul(x v) second", "p = MatMul(x u) third");
    return m;
}

/* Notes are of one node: those of all nodes of a call. */
typedef struct note {
    const char *call, *aten, *arguments, *line;
} note;

static void noted(model *m, const note *n, const char *op, const char *name, const char *inputs,
                  const char *output, const char *attributes)
{
    char operation[64];
    bool is_prim =
        strcmp(n->call, "var") == 0 || strcmp(n->call, "sum_1") == 0 || strcmp(n->call, "div") == 0;
    snprintf(operation, sizeof operation, "%s.%s", is_prim ? "prims" : "aten", n->aten);
    model_source(m, "net", n->call);
    model_class(m, "zoo.Net", operation);
    model_call(m, operation, n->arguments);
    model_statement(m, 10, n->line);
    model_node(m, op, name, inputs, output, attributes);
}

/* As the exporter writes slice_scatter: it moves the dim to the front. */
static void add_slice_scatter(model *m, const char *line)
{
    model_input(m, "val_5", "i64[2,1]");
    const note n = {"slice_scatter", "slice_scatter.default", "%a, %p, 1, 0, 2", line};
    noted(m, &n, "Transpose", "t1", "p", "val_1", "perm=[1,0]");
    noted(m, &n, "Transpose", "t2", "a", "val_2", "perm=[1,0]");
    noted(m, &n, "ScatterND", "s", "val_2 val_5 val_1", "val_3", "");
    noted(m, &n, "Transpose", "t3", "val_3", "c", "perm=[1,0]");
}

static void add_index_put(model *m, const char *arguments, const char *line, const char *reduction)
{
    model_input(m, "val_5", "i64[2,1]");
    const note n = {"index_put", "index_put.default", arguments, line};
    noted(m, &n, "Transpose", "t1", "p", "val_1", "perm=[1,0]");
    noted(m, &n, "Transpose", "t2", "a", "val_2", "perm=[1,0]");
    noted(m, &n, "ScatterND", "s", "val_2 val_5 val_1", "val_3", reduction);
    noted(m, &n, "Transpose", "t3", "val_3", "c", "perm=[1,0]");
}

static void add_put(model *m)
{
    add_index_put(m, "%a, [None, %b_i], %p", "a[:, i] = p", "");
}

static void add_put_into_clone(model *m)
{
    add_index_put(m, "%clone, [None, %b_i], %p", "y[:, i] = p", "");
}

static void add_index_add(model *m)
{
    add_index_put(m, "%a, [None, %b_i], %p, True", "y = torch.index_add(a, 1, i, p)",
                  "reduction='add'");
}

static void add_scatter(model *m, const char *line)
{
    model_add(m, "weight zeros_like f32[4,6]", "in i i64[4,6]");
    const note n = {"scatter", "scatter.src", "%zeros_like, 1, %b_i, %a", line};
    noted(m, &n, "ScatterElements", "s", "zeros_like i a", "c", "axis=1");
}

static void add_scatter_anew(model *m)
{
    add_scatter(m, "y = zeros.scatter(1, i, a)");
}

static void add_roll(model *m, int dims)
{
    static const int64_t numbers[] = {0, 1, 2, 9};
    model_ints(m, "i0", 1, &numbers[0]);
    model_ints(m, "i1", 1, &numbers[1]);
    model_ints(m, "i2", 1, &numbers[2]);
    model_ints(m, "i9", 1, &numbers[3]);
    const note n = {"roll", "roll.default", "%a, [2, 2], [0, 1]",
                    "y = torch.roll(a, (2, 2), (0, 1))"};
    noted(m, &n, "Slice", "0", "a i2 i9 i0", "r0", "");
    noted(m, &n, "Slice", "1", "a i0 i2 i0", "r1", "");
    noted(m, &n, "Concat", "2", "r0 r1", dims > 1 ? "r2" : "c", "axis=0");
    if (dims == 1) return;
    noted(m, &n, "Slice", "3", "r2 i2 i9 i1", "r3", "");
    noted(m, &n, "Slice", "4", "r2 i0 i2 i1", "r4", "");
    noted(m, &n, "Concat", "5", "r3 r4", "c", "axis=1");
}

static void add_roll_of_one(model *m)
{
    add_roll(m, 1);
}

static void add_roll_of_two(model *m)
{
    add_roll(m, 2);
}

static void add_bound(model *m)
{
    const note n = {"clamp", "clamp.Tensor", "%a, %b", "y = torch.clamp(a, min=b)"};
    noted(m, &n, "Max", "max", "a b", "c", "");
}

static void add_difference_in_place(model *m)
{
    const note n = {"sub", "sub.Tensor", "%a, %b", "a -= b"};
    noted(m, &n, "Sub", "sub", "a b", "c", "");
}

static void add_maximum(model *m)
{
    const note n = {"max_1", "max.default", "%a", "y = a.max()"};
    noted(m, &n, "ReduceMax", "max", "a", "c", "keepdims=0");
}

/* The unreduced values stay in the storage of the result. */
static void add_loss(model *m)
{
    const note n = {"mse_loss", "mse_loss.default", "%a, %b", "y = F.mse_loss(a, b)"};
    noted(m, &n, "Sub", "sub", "a b", "d", "");
    noted(m, &n, "Mul", "square", "d d", "e", "");
    noted(m, &n, "ReduceMean", "mean", "e", "c", "keepdims=0");
}

/* What the pass keeps beside x; temporaries; how many tensors are like a. */
typedef struct expected {
    const char *what;
    void (*add)(model *m);
    uint64_t kept, forward, backward;
    unsigned made;
} expected;

static const expected cases[] = {
    {"index_put", add_put, 2 * 8, 0, 0, 2},
    {"index_put into a clone", add_put_into_clone, 2 * 8, 0, 0, 3},
    {"index_add", add_index_add, 2 * 8 + PART, 0, 0, 3},
    {"scatter", add_scatter_anew, 4 * 6 * 8, 0, 0, 4},
    {"roll", add_roll_of_one, 0, 0, 0, 3},
    {"roll of two dims", add_roll_of_two, 0, A, A, 3},
    {"a tensor as bound", add_bound, 2 * A, 0, A + 2 * MASK, 3},
    {"-=", add_difference_in_place, 0, 0, 0, 2},
    {"max", add_maximum, A + 4, 0, 2 * MASK + 8 + A, 2},
    {"mse_loss", add_loss, 2 * A, A, 0, 3},
};

static bool agrees(const expected *e)
{
    onv_eager eager;
    onv_lower_options options = {.loss = ONV_LOSS_NONE};
    model *m = begin();
    e->add(m);
    model_add(m, "y = Neg(c) last", "out y f32");
    trainer t;
    trainer_open_model(&t, m);
    trainer_lower(&t, &options, &eager);
    expected is = {.what = e->what};
    uint32_t neg = eager.outputs.at[0];
    for (size_t i = 0; i < eager.ops.count; i++) {
        is.forward += eager.ops.at[i].forward_temp_bytes;
        is.backward += onv_eager_backward_temps(&eager, &eager.ops.at[i]);
    }
    for (size_t i = 0; i < eager.storages.count; i++)
        is.made += eager.storages.at[i].kind == ONV_STORAGE_ACTIVATION &&
                   eager.storages.at[i].bytes == A && i != eager.tensors.at[neg].storage;
    onv_eager_cleanup(&eager);
    is.kept = trainer_saved(&t, &options) - X;
    trainer_close(&t);
    model_free(m);
    if (is.kept == e->kept && is.forward == e->forward && is.backward == e->backward &&
        is.made == e->made)
        return true;
    print_error("%s: keeps %llu, makes %llu and %llu, %u tensors; expected %llu, %llu, %llu, %u\n",
                e->what, (unsigned long long)is.kept, (unsigned long long)is.forward,
                (unsigned long long)is.backward, is.made, (unsigned long long)e->kept,
                (unsigned long long)e->forward, (unsigned long long)e->backward, e->made);
    return false;
}

TEST(calls_make_what_pytorch_makes)
{
    bool all = true;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) all &= agrees(&cases[i]);
    assert_true(all);
}

/* Writes into a part are new tensors in the export: those are counted, and told, but not of calls that make one themselves. */
TEST(writes_are_told)
{
    static const char *const lines[] = {"a[:, :2] = p", "y = torch.slice_scatter(a, p, 1, 0, 2)"};
    for (size_t i = 0; i < 2; i++) {
        trainer t;
        model *m = begin();
        add_slice_scatter(m, lines[i]);
        model_add(m, "y = Neg(c) last", "out y f32");
        TRAINED(&t, m, .reports = true);
        const onv_diag *told = diag_of(&t.model, "parts-written");
        assert_int_equal(told != NULL && told->severity == ONV_WARNING, i == 0);
        trainer_close(&t);
        model_free(m);
    }
}
