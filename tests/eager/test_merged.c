/* Calls that the exporter merged, and tensors that it wrote once, of which PyTorch makes several. */
#include "eager/noted_network.h"
#include "eager/pass.h"
#include "eager/trainer.h"
#include "ir/notes.h"
#include "support/capture.h"
#include "support/test.h"

/* What the warning says; NULL: there is none. */
static const char *merged_calls(const trainer *t)
{
    const onv_diag *told = diag_of(&t->model, "merged-calls");
    return told != NULL ? told->message : NULL;
}

/* An argument stands for the input in its place: a product with 1, which the exporter removed, is none of the one beside it. */
TEST(an_argument_is_the_input_in_its_place)
{
    static const struct {
        const char *arguments, *inputs, *merged;
    } cases[] = {{"%type_as, %mul_1", "mul exp", NULL},
                 {"%mul_1, %exp", "mul exp", "mul_1"},
                 {"%exp, %mul_1", "exp mul", "mul_1"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_MODEL m = model_read(18, "in x f32[4,8]");
        add_call(m, "Neg", "x", "mul", "mul");
        add_call(m, "Exp", "mul", "exp", "exp");
        model_add(m, "source net mul_2", "class zoo.Net aten.mul.Tensor");
        model_call(m, "aten.mul.Tensor", cases[i].arguments);
        model_node(m, "Mul", "y", cases[i].inputs, "y", "");
        model_output(m, "y", "f32");
        OWNED_TRAINER t;
        trainer_open_model(&t, m);
        const char *merged = onv_noted(&t.model.nodes.at[2])->merged_call;
        assert_int_equal(merged != NULL, cases[i].merged != NULL);
        if (merged != NULL) assert_string_equal(merged, cases[i].merged);
    }
}

/* A number that is missing was a call, of a difference the size of the largest; an argument that no input is called is another. */
TEST(merged_calls_are_told)
{
    static const struct {
        const char *last, *argument, *told; /* the last call, what one before it reads */
    } cases[] = {{"sub_1", "%sub", NULL},      {"sub_2", "%sub", "1 calls"},
                 {"sub_3", "%sub", "2 calls"}, {"sub_1", "%sub_4", "3 calls"},
                 {"add", "%sub_1", "1 calls"}, {"exp_1", "%sub", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_MODEL m = model_new(18);
        OWNED_TRAINER t;
        model_add(m, "in x f32[4,8]", "weight w f32[4,8]", "role w PARAMETER");
        add_call(m, "Sub", "x w", "sub", "sub");
        model_call(m, "aten.cos.default", cases[i].argument);
        add_call(m, "Cos", "sub", "cos", "cos");
        add_call(m, "Mul", "sub cos", "mul", "mul");
        add_call(m, "Sub", "mul sub", "y", cases[i].last);
        model_output(m, "y", "f32");
        trainer_open_model(&t, m);
        trainer_saved(&t, &(onv_lower_options){.loss = ONV_LOSS_NONE, .reports = true});
        const char *message = merged_calls(&t);
        if ((message != NULL) != (cases[i].told != NULL) ||
            (message != NULL && strncmp(message, cases[i].told, strlen(cases[i].told)) != 0))
            fail_msg("case %zu: %s", i, message);
        if (i == 2) assert_non_null(strstr(message, " 256 bytes more"));
    }
}

/* Of two inputs that are like the call, the note means either: the larger one decides, with what its operation keeps. */
TEST(the_larger_input_decides)
{
    OWNED_MODEL m = model_read(18, "in x f32[4,8]", "weight w f32[4,8]", "role w PARAMETER");
    OWNED_TRAINER t;
    model_add(m, "weight v f32[1,8]", "role v PARAMETER");
    add_call(m, "Mul", "x w", "cos", "cos");
    add_call(m, "Exp", "cos", "exp", "exp");
    add_call(m, "Exp", "v", "exp_1", "exp_1");
    model_call(m, "aten.add.Tensor", "%exp_1, %exp_2");
    add_call(m, "Add", "exp_1 exp", "y", "add");
    model_output(m, "y", "f32");
    trainer_open_model(&t, m);
    trainer_saved(&t, &(onv_lower_options){.loss = ONV_LOSS_NONE, .reports = true});
    const char *message = merged_calls(&t);
    assert_non_null(message);
    assert_non_null(strstr(message, " 256 bytes more"));
}

/* Zeros that two calls add rows to are two tensors, of which exporters write one. */
TEST(scattered_rows_have_zeros_of_their_own)
{
    static const int64_t shape[] = {4, 8};
    OWNED_PASS p;
    model *m = model_read(18, "in x f32[6,8]", "in at i64[6,8]");
    model_ints(m, "shape", 2, shape);
    model_add(m, "zeros = ConstantOfShape(shape) 0",
              "a = ScatterElements(zeros at x) 1 reduction='add'", "b = Neg(x) 2",
              "c = ScatterElements(zeros at b) 3 reduction='add'", "y = Add(a c) 4", "out y f32");
    pass_run(&p, m, NULL);
    unsigned n = 0;
    for (size_t i = 0; i < p.t.buffers.count; i++) {
        const onv_buffer *b = &p.t.buffers.at[i];
        n += b->kind == ONV_BUFFER_ACTIVATION && b->bytes == 4 * 8 * 4 && b->last == b->first + 1;
    }
    assert_int_equal(n, 2 + 1); /* both, and c */
}

/* The saved bytes of what add_call() wrote. */
static uint64_t saved_of(model *m)
{
    trainer t;
    model_output(m, "y", "f32");
    uint64_t saved = TRAINED(&t, m, .loss = ONV_LOSS_NONE).saved_activation_bytes;
    trainer_close(&t);
    model_free(m);
    return saved;
}

/* Code that has the formula of a layer norm itself calls each part of it. */
TEST(a_norm_of_code_keeps_its_parts)
{
    enum { H = 4 * 8 * 4, ROW = 4 * 4 };
    for (int is_code = 0; is_code < 2; is_code++) {
#define PART(op, in, out, name) add_call(m, op, in, out, is_code ? name : "layer_norm")
        model *m = model_read(13, "in x f32[4,8]", "weight w f32[8,8]", "role w PARAMETER");
        model_float(m, "two", 2);
        model_float(m, "eps", 1e-5F);
        add_call(m, "MatMul", "x w", "h", "mm");
        model_source(m, "net", is_code ? "mean" : "layer_norm");
        model_add(m, "class zoo.Net aten.op.default", "mean = ReduceMean(h) mean axes=[-1]");
        PART("Sub", "h mean", "c", "sub");
        PART("Pow", "c two", "p", "pow_1");
        model_source(m, "net", is_code ? "mean_1" : "layer_norm");
        model_add(m, "class zoo.Net aten.op.default", "var = ReduceMean(p) var axes=[-1]");
        PART("Add", "var eps", "e", "add");
        PART("Sqrt", "e", "r", "sqrt");
        PART("Div", "c r", "y", "div");
        /* x and, of the kernel, its input, mean and 1 / deviation; else what was centred, and the root. */
        assert_int_equal(saved_of(m), is_code ? H + H + ROW : H + H + 2 * ROW);
    }
}
