/* In which order parameters come to the device and autocast casts, and in which type what drops whole paths is drawn. */
#include "eager/trainer.h"
#include "support/test.h"

typedef struct seen {
    char weights[256];    /* labels, in the order of the allocations */
    uint64_t mixed_bytes; /* the largest tensor of the product's step */
    char product
        [64]; /* bytes of what the step of y makes, in the order of the allocations, as far as there is room */
} seen;

static onv_status look(void *context, const onv_timeline *t, const onv_placement *placement,
                       const char *plan, onv_error *err)
{
    (void)placement, (void)plan, (void)err;
    seen *s = context;
    for (size_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        if (b->label == NULL) continue;
        if (b->kind == ONV_BUFFER_WEIGHT) {
            strncat(s->weights, b->label, sizeof s->weights - strlen(s->weights) - 2);
            strcat(s->weights, " ");
        }
        if (b->kind == ONV_BUFFER_ACTIVATION && strcmp(b->label, "mixed") == 0)
            s->mixed_bytes = b->bytes;
        size_t length = strlen(s->product);
        if (b->kind == ONV_BUFFER_ACTIVATION && strcmp(b->label, "y") == 0)
            snprintf(s->product + length, sizeof s->product - length, "%llu ",
                     (unsigned long long)b->bytes);
    }
    return ONV_OK;
}

static seen train(model *m, onv_dtype amp)
{
    trainer t;
    seen s = {.weights = ""};
    trainer_open_model(&t, m);
    model_free(m);
    onv_training_options all = {.train = {.optimizer = onv_optimizer_find("sgd"), .lower.amp = amp},
                                .take = look,
                                .take_context = &s};
    trainer_compute(&t, &all);
    trainer_close(&t);
    return s;
}

/* A block that makes its shortcut before its layers and runs it behind them. */
TEST(children_stand_as_they_were_registered)
{
    for (int is_listed = 0; is_listed < 2; is_listed++) {
        model *m = model_read(17, "in x f32[8,16]", "weight block.layer.weight f32[16,16]",
                              "weight block.shortcut.weight f32[16,16]");
        if (is_listed) model_parameters(m, "block.shortcut.weight block.layer.weight");
        model_add(m, "a = MatMul(x block.layer.weight) a", "b = MatMul(x block.shortcut.weight) b",
                  "y = Add(a b) y", "out y f32");
        assert_string_equal(train(m, ONV_UNDEFINED).weights,
                            is_listed ? "block.shortcut.weight block.layer.weight "
                                      : "block.layer.weight block.shortcut.weight ");
    }
}

/* x.new_empty(shape).bernoulli_(keep) is in the type of x; torch.empty() is not. */
TEST(dropped_paths_are_drawn_in_the_lowered_type)
{
    static const char *const made[] = {"aten.new_empty.default", "aten.empty.memory_format"};
    for (size_t i = 0; i < 2; i++) {
        static const int64_t dims[] = {8, 1};
        model *m = model_read(17, "in x f32[8,16]", "weight weight f32[16,16]");
        model_ints(m, "dims", 2, dims);
        model_add(m, "weight keep f32[]", "product = MatMul(x weight) product");
        model_class(m, "network", made[i]);
        model_add(m, "empty = ConstantOfShape(dims) empty", "class network aten.bernoulli.p",
                  "random = RandomUniformLike(empty) random", "class network aten.bernoulli.p",
                  "less = Less(random keep) less", "class network aten.bernoulli.p",
                  "drawn = Cast(less) drawn to=1", "scaled = Div(drawn keep) scaled",
                  "mixed = Mul(product scaled) mixed", "y = MatMul(mixed weight) y", "out y f32");
        assert_int_equal(train(m, ONV_FLOAT16).mixed_bytes, i == 0 ? 256 : 512);
    }
}

static void expect_start(const char *text, const char *start)
{
    if (strncmp(text, start, strlen(start)) != 0) fail_msg("%s, expected %s", text, start);
}

/* As PyTorch 2.15 was seen to allocate: the bias, the weight, the input, the result. What is cast of a slice is dense, so
 * that no copy follows. */
TEST(autocast_casts_the_last_argument_first)
{
    static const int64_t zero[] = {0}, two[] = {2}, one[] = {1};
    model *m = model_read(17, "in x f32[8,16]", "weight w f32[16,4]", "weight b f32[4]");
    model_add(m, "y = Gemm(x w b) y", "out y f32");
    expect_start(train(m, ONV_FLOAT16).product, "8 128 256 64 ");
    m = model_read(17, "in x f32[8,4,16]", "weight w f32[16,4]");
    model_ints(m, "from", 1, zero);
    model_ints(m, "to", 1, two);
    model_ints(m, "axis", 1, one);
    model_add(m, "s = Slice(x from to axis) s", "y = MatMul(s w) y", "out y f32");
    expect_start(train(m, ONV_FLOAT16).product, "128 512 128 ");
}
