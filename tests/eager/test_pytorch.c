/* Releases of PyTorch: which is which, and what each keeps. */
#include "eager/pytorch.h"
#include "eager/trainer.h"
#include "lower/lower.h"
#include "support/test.h"

TEST(releases_are_found_by_name)
{
    static const struct {
        const char *name;
        uint32_t version; /* 0: refused */
    } cases[] = {{NULL, 2015},       {"2.15", 2015}, {"2.1", 2001}, {"2.1.2+cu121", 2001},
                 {"2.10.0", 2010},   {"1.13", 1013}, {"1.9", 1009}, {"1.8", 0},
                 {"2.150", 0},       {"2", 0},       {"", 0},       {"2.1x", 0},
                 {"2.6+cu124", 2006}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_error err = {0};
        uint32_t version = 0;
        onv_status status = onv_pytorch_find(cases[i].name, &version, &err);
        assert_int_equal(status, cases[i].version > 0 ? ONV_OK : ONV_ERR_USAGE);
        assert_int_equal(version, cases[i].version);
        if (status != ONV_OK) assert_non_null(strstr(err.message, "2.15, 2.14"));
    }
    size_t n = 0;
    while (onv_pytorch_release(n) != NULL) n++;
    assert_true(n > 10);
}

/* x [64, 32] through a product, the operation and another product: `kept` is what the operation keeps,
 * by release, beside what the products do. */
static uint64_t kept_by(const char *op, const char *attributes, uint32_t version)
{
    onv_lower_options how = {.loss = ONV_LOSS_NONE, .pytorch_version = version, .no_inplace = true};
    model *m = model_read(17, "in x f32[64,32]", "weight v f32[32,32]", "a = MatMul(x v) 1");
    model_node(m, op, "2", "a", "y", attributes);
    model_output(m, "y", "f32");
    return trainer_kept(m, &how);
}

TEST(inputs_are_kept_by_release)
{
    enum { X = 4 * 64 * 32 };
    static const struct {
        const char *op, *attributes;
        uint32_t version;
        uint64_t bytes; /* with x, which the product keeps */
    } cases[] = {
        {"Softmax", "", 1010, 3 * X},
        {"Softmax", "", 1011, 2 * X},
        {"Softmax", "", 0, 2 * X},
        {"LogSoftmax", "", 1009, 3 * X},
        {"LogSoftmax", "", 2000, 2 * X},
        {"Relu", "", 1009, 3 * X},
        {"Relu", "", 1010, 2 * X},
        {"ReduceMean", "axes=[1]", 1012, X},
        {"ReduceMean", "axes=[1]", 1013, 2 * X},
        {"ReduceMean", "axes=[1]", 2001, 2 * X},
        {"ReduceMean", "axes=[1]", 2002, X},
        {"ReduceMean", "axes=[1]", 2015, X},
        {"ReduceSum", "", 2001, X},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (kept_by(cases[i].op, cases[i].attributes, cases[i].version) != cases[i].bytes)
            fail_msg(
                "%s in %u keeps %llu", cases[i].op, cases[i].version,
                (unsigned long long)kept_by(cases[i].op, cases[i].attributes, cases[i].version));
}

/* Two gradients of a meet: from 2.0 on one is added to the other, before they made a third. */
static size_t sums_of_gradients(uint32_t version)
{
    trainer t;
    onv_error err = {0};
    OWNED_EAGER eager;
    onv_train_program program;
    model *m = model_new(17);
    onv_train_options options = {.optimizer = onv_optimizer_find("sgd")};
    options.lower.loss = ONV_LOSS_NONE;
    options.lower.pytorch_version = version;
    model_add(m, "in x f32[64,64]", "weight v f32[64,64]", "a = MatMul(x v) 1", "b = Neg(a) 2",
              "y = Add(a b) 3", "out y f32");
    trainer_open_model(&t, m);
    trainer_lower(&t, &options.lower, &eager);
    assert_int_equal(onv_train_program_build(&t.model, &eager, &options, &program, &err), ONV_OK);
    size_t n = 0;
    for (size_t i = 0; i < program.timeline.steps.count; i++)
        n += strcmp(program.timeline.steps.at[i].label, "sum of gradients") == 0;
    onv_train_program_cleanup(&program);
    trainer_close(&t);
    model_free(m);
    return n;
}

TEST(sums_of_gradients_are_in_place_from_2_0)
{
    assert_int_equal(sums_of_gradients(1013), 3); /* one in each iteration */
    assert_int_equal(sums_of_gradients(2000), 0);
    assert_int_equal(sums_of_gradients(0), 0);
}
