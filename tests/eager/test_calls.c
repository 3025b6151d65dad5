/* What the notes of calls say of attention. */
#include "eager/trainer.h"
#include "support/capture.h"
#include "support/test.h"

/* A call of attention with these arguments. */
static model *build_call(const char *arguments)
{
    static const char *const nodes[][4] = {
        {"Mul", "h two", "q", ""},        {"Transpose", "h", "t", "perm=[1,0]"},
        {"Mul", "t two", "k", ""},        {"MatMul", "q k", "s", ""},
        {"Softmax", "s", "p", "axis=-1"}, {"MatMul", "p h", "y", ""}};
    model *m = model_read(18, "in x f32[4,8]", "weight w f32[8,8]", "role w PARAMETER");
    model_float(m, "two", 2);
    model_node(m, "MatMul", "product", "x w", "h", "");
    for (size_t k = 0; k < sizeof nodes / sizeof nodes[0]; k++) {
        model_add(m, "source at sdpa", "class Attention aten.scaled_dot_product_attention.default");
        model_call(m, "aten.scaled_dot_product_attention.default", arguments);
        model_node(m, nodes[k][0], nodes[k][2], nodes[k][1], nodes[k][2], nodes[k][3]);
    }
    model_output(m, "y", "f32");
    return m;
}

/* The note of the call says how many are dropped; the user may say otherwise. */
TEST(dropout_inside_attention_is_told)
{
    static const struct {
        const char *arguments;
        double dropout; /* of the user */
        bool drops;
    } cases[] = {
        {"%q, %k, %h, %mask", -1, false},
        {"%q, %k, %h, None, 0.1", -1, true},
        {"%q, %k, %h, None, 0.1", 0, false},
        {"%q, %k, %h, None, 0.0, True", -1, false},
        {"%q, %k, %h, None, 0.0", 0.1, true},
        {"%q, %k, %h), kwargs = {dropout_p: 0.1}, (", -1, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_lower_options options = {.loss = ONV_LOSS_NONE, .reports = true};
        uint64_t without = trainer_kept(build_call(cases[i].arguments), &options);
        options.attention_dropout = cases[i].dropout;
        uint64_t kept = trainer_kept(build_call(cases[i].arguments), &options);
        if (kept - without != (cases[i].drops ? 4 * 4 * (1 + sizeof(float)) : 0))
            fail_msg("%s: %d more", cases[i].arguments, (int)(kept - without));
        OWNED_TRAINER t;
        OWNED_MODEL m = build_call(cases[i].arguments);
        trainer_open_model(&t, m);
        onv_train_options how = {.optimizer = onv_optimizer_find("sgd"), .lower = options};
        trainer_run(&t, &how);
        assert_null(diag_of(&t.model, "attention-dropout"));
    }
}
