/* Sizes of layers that the forward pass never runs, assumed as networks are usually built. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "eager/trainer.h"

typedef struct assumption {
    const char *run;    /* parameters in the file, and their dims: "a.weight 8,8" */
    const char *listed; /* the others, as the network lists them after those; "~name": a buffer */
    uint64_t elems;     /* that are assumed; 0: none */
    uint64_t statistics;
    const char *told; /* part of the diagnostic */
} assumption;

typedef struct found {
    uint64_t elems, run, statistics;
    bool is_missing, is_note;
    char text[512];
} found;

/* Each parameter of the file is added up. */
static model *open_network(const assumption *a, uint64_t *run)
{
    model *m = model_new(18);
    char text[512], all[1024] = "", *at = text, last[16] = "x";
    model_input(m, "x", "f32[4,8]");
    snprintf(text, sizeof text, "%s", a->run);
    int n = 0;
    for (char *name = strtok_r(text, " ", &at); name != NULL; name = strtok_r(NULL, " ", &at)) {
        char type[32], sum[16], next[16], inputs[64];
        const char *dims = strtok_r(NULL, " ", &at);
        uint64_t elems = 1, dim;
        for (const char *d = dims; sscanf(d, "%lu", &dim) == 1; d = strchr(d, ',') + 1) {
            elems *= dim;
            if (strchr(d, ',') == NULL) break;
        }
        *run += elems;
        snprintf(type, sizeof type, "f32[%s]", dims);
        model_weight(m, name, type);
        model_role(m, name, "PARAMETER");
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s ", name);
        snprintf(sum, sizeof sum, "s%d", n);
        snprintf(next, sizeof next, "a%d", n++);
        snprintf(inputs, sizeof inputs, "%s %s", last, sum);
        model_node(m, "ReduceSum", sum, name, sum, "keepdims=0");
        model_node(m, "Add", next, inputs, next, "");
        memcpy(last, next, sizeof last);
    }
    snprintf(all + strlen(all), sizeof all - strlen(all), "%s", a->listed);
    model_parameters(m, all);
    model_output(m, last, "f32");
    return m;
}

static found assume(const assumption *a, uint64_t parameters)
{
    found f = {0};
    trainer t;
    model *m = open_network(a, &f.run);
    trainer_open_model(&t, m);
    onv_train_options options = {
        .optimizer = onv_optimizer_find("sgd"),
        .lower = {.loss = ONV_LOSS_NONE, .reports = true, .parameters = parameters}};
    const onv_training_figures figures = trainer_run(&t, &options).figures;
    assert_int_equal(figures.gradient_bytes, f.run * 4);
    f.elems = figures.parameter_bytes / 4 - f.run;
    f.statistics = figures.buffer_bytes;
    for (size_t i = 0; i < t.model.diags.count; i++) {
        const char *code = t.model.diags.at[i].code;
        f.is_missing |=
            strcmp(code, "missing-parameters") == 0 && t.model.diags.at[i].severity == ONV_WARNING;
        if (strcmp(code, "assumed-sizes") != 0) continue;
        f.is_note = t.model.diags.at[i].severity == ONV_NOTE;
        snprintf(f.text, sizeof f.text, "%s", t.model.diags.at[i].message);
    }
    trainer_close(&t);
    model_free(m);
    return f;
}

static void check(const assumption *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        found f = assume(&cases[i], 0);
        assert_int_equal(f.elems, cases[i].elems);
        assert_int_equal(f.statistics, cases[i].statistics);
        assert_int_equal(f.is_missing, cases[i].elems == 0);
        assert_int_equal(f.text[0] != '\0', cases[i].elems > 0);
        assert_false(f.is_note);
        if (cases[i].told != NULL) assert_non_null(strstr(f.text, cases[i].told));
    }
}

#define N_OF(cases) (sizeof(cases) / sizeof(cases)[0])

/* EfficientNet's last convolution is 4 times as wide as what it reads; its lite form and MobileNet have 1280. */
static void last_convolutions(void **state)
{
    (void)state;
    static const assumption cases[] = {
        {"e.blocks.0.0.se.conv_reduce.weight 4,8,1,1 e.conv_pwl.weight 400,48,1,1 e.bn.weight 400",
         "e.conv_head.weight e.bn2.weight e.bn2.bias ~e.bn2.running_mean", 1600 * 402,
         2 * 1600 * 4 + 8,
         "2572800 bytes without gradient: a last convolution, and its norm, is 4 times"},
        {"e._blocks.0._se_reduce.weight 4,8,1,1 e.conv_pwl.weight 400,48,1,1",
         "e._conv_head.weight e._bn1.weight e._bn1.bias ~e._bn1.running_mean", 1600 * 402,
         2 * 1600 * 4 + 8, "'e._bn1', 'e._conv_head'"},
        {"e.blocks.1.0.se.conv_reduce.weight 4,8,1,1 e.conv_pwl.weight 16,48,1,1",
         "e.conv_head.weight e.bn2.weight e.bn2.bias ~e.bn2.running_mean", 1280 * 18,
         2 * 1280 * 4 + 8, "--parameters N settles it"},
        /* With a bias it is MobileNetV3's, of either width; and nothing is known of what it reads. */
        {"e.conv_pwl.weight 16,48,1,1", "e.conv_head.weight e.conv_head.bias", 0, 0, NULL},
        {"e.norm.weight 16", "e.conv_head.weight", 0, 0, NULL},
    };
    check(cases, N_OF(cases));
}

/* Convolutions go on as wide as they were; those before a norm that nothing runs, too. */
static void convolutions_in_a_row(void **state)
{
    (void)state;
    static const assumption cases[] = {
        {"f.0.weight 8,4,3,3 f.0.bias 4 f.2.weight 8,8,3,3 f.2.bias 8",
         "f.4.weight f.4.bias f.7.weight f.7.bias", 2 * (8 * 8 * 9 + 8), 0,
         "convolutions and norms are as wide as those before"},
        {"f.0.weight 8,4,3,3 f.0.bias 4 f.2.weight 8,8,3,3 f.2.bias 8",
         "f.4.weight f.4.bias f.5.weight f.5.bias ~f.5.running_mean ~f.5.running_var",
         8 * 8 * 9 + 3 * 8, 2 * 8 * 4 + 8, NULL},
        {"e.weight 8,8,3,3", "d.c.0.0.weight d.c.0.1.weight d.c.0.1.bias ~d.c.0.1.running_mean",
         8 * 8 * 9 + 2 * 8, 2 * 8 * 4 + 8, NULL},
        /* Widths grow here; after a matrix; a module that is no norm follows; blocks that go on. */
        {"f.0.weight 4,4,3,3 f.2.weight 8,4,3,3", "f.4.weight", 0, 0, NULL},
        {"f.0.weight 8,4 f.2.weight 8,8", "f.4.weight", 0, 0, NULL},
        {"e.weight 8,8,3,3", "c.0.weight c.1.weight c.1.bias", 0, 0, NULL},
        {"b1.x.weight 8,8,3,3 b2.x.weight 8,8,3,3", "b3.skip.weight b3.n.weight ~b3.n.running_mean",
         0, 0, NULL},
        /* A norm may be before its convolution. */
        {"e.weight 8,8,3,3", "n.weight n.bias ~n.running_mean", 0, 0, NULL},
    };
    check(cases, N_OF(cases));
}

/* "0.weight" is the weight of the first of something, in any row of layers. */
static void numbers_alone_are_no_likeness(void **state)
{
    (void)state;
    static const assumption cases[] = {
        {"a.to_out.0.weight 8,8 b.to_out.0.weight 8,8", "d.condition.layers.0.weight", 0, 0, NULL},
        {"a.to_out.0.0.weight 8,8 b.to_out.0.0.weight 8,8", "d.layers.0.1.weight", 0, 0, NULL},
    };
    check(cases, N_OF(cases));
}

#define STAGES                                                                                     \
    "l1.0.c.weight 8,4,3,3 l1.1.c.weight 8,8,3,3 l2.0.c.weight 16,8,3,3 l2.0.d.0.weight 16,8,1,1 " \
    "l2.1.c.weight 16,16,3,3 "

/* Each stage is twice as wide as the one before it, and has the blocks that its names tell. */
static void stages_double(void **state)
{
    (void)state;
    static const assumption cases[] = {
        {STAGES, "l3.0.c.weight l3.0.d.0.weight l3.1.c.weight l3.2.c.weight",
         32 * 16 * 9 + 32 * 16 + 2 * 32 * 32 * 9, 0,
         "a stage is the one before it, twice as wide (where"},
        {STAGES "l2.0.n.weight 16 l2.1.n.weight 16 l1.1.n.weight 8",
         "l3.0.c.weight l3.1.c.weight l4.0.c.weight l4.1.c.weight l3.1.n.weight "
         "~l3.1.n.running_mean",
         32 * 16 * 9 + 32 * 32 * 9 + 64 * 32 * 9 + 64 * 64 * 9 + 32, 2 * 32 * 4 + 8, NULL},
        /* Of depth-wise convolutions one dim grows, in first blocks too. */
        {"l1.0.c.weight 8,1,3,3 l1.1.c.weight 8,1,3,3 l2.0.c.weight 16,1,3,3 l2.1.c.weight "
         "16,1,3,3",
         "l3.0.c.weight l3.1.c.weight", 2 * 32 * 9, 0, NULL},
        {"l1.0.c.weight 8,4,3,3 l1.1.c.weight 8,4,3,3 l2.0.c.weight 16,4,3,3 l2.1.c.weight "
         "16,4,3,3",
         "l3.0.c.weight l3.1.c.weight", 2 * 32 * 4 * 9, 0, NULL},
        /* Widths that do not double; a part that the last stage lacks; too many stages, which are blocks; one that runs. */
        {"l1.0.c.weight 8,8,3,3 l1.1.c.weight 8,8,3,3 l2.0.c.weight 12,8,3,3 l2.1.c.weight "
         "12,12,3,3",
         "l3.0.c.weight l3.1.c.weight", 0, 0, NULL},
        {STAGES, "l3.0.c.weight l3.1.c.weight l3.1.x.weight", 0, 0, NULL},
        {STAGES, "l3.0.c.weight l3.1.c.weight l6.1.c.weight", 0, 0, NULL},
        {STAGES "l3.1.c.weight 64,64,3,3", "l3.0.d.0.weight", 0, 0, NULL},
        /* Only one stage before it. */
        {"l1.0.c.weight 8,8,3,3 l1.1.c.weight 8,8,1,1", "l2.0.c.weight l2.1.c.weight", 0, 0, NULL},
    };
    check(cases, N_OF(cases));
}

/* Attention that reads fewer and fewer positions: widths of 1, 2, 5 and 8, and kernels that halve; the layer in front of a stage
 * reads the stage before it. Another stage is not known. */
static void stages_of_a_pyramid(void **state)
{
    (void)state;
    static const assumption cases[] = {
        {"b1.0.attn.sr.weight 8,8,8,8 b1.0.q.weight 8,8 b2.0.attn.sr.weight 16,16,4,4 "
         "b2.0.q.weight "
         "16,16 p1.proj.weight 8,3,7,7 p2.proj.weight 16,8,3,3 n1.weight 8 "
         "n2.weight 16",
         "b3.0.attn.sr.weight b3.0.q.weight b3.1.q.weight p3.proj.weight n3.weight b4.0.q.weight "
         "p4.proj.weight",
         40 * 40 * (4 + 2) + 40 * 16 * 9 + 64 * 64 + 64 * 40 * 9 + 40, 0, "a stage is the one"},
        {"b3.0.attn.sr.weight 8,8,8,8 b3.0.q.weight 8,8 b4.0.q.weight 16,16", "b5.0.q.weight", 0, 0,
         NULL},
    };
    check(cases, N_OF(cases));
}

/* A classifier that nothing asks has 1000 classes. */
static void classifiers(void **state)
{
    (void)state;
    static const assumption cases[] = {
        {"e.c.weight 16,8,3,3 e.n.weight 16", "e.fc.weight e.fc.bias", 1000 * 17, 0,
         "a classifier has 1000 classes"},
        {"e.c.weight 16,8,3,3 e.c.bias 16", "e.head.fc.weight e.head.fc.bias", 1000 * 17, 0, NULL},
        {"e.features.0.weight 16,8,3,3",
         "e.classifier.0.weight e.classifier.0.bias e.classifier.3.weight e.classifier.3.bias "
         "e.classifier.6.weight e.classifier.6.bias",
         4096 * (49 * 16 + 1) + 4096 * 4097 + 1000 * 4097, 0, NULL},
        /* A language model's; a layer of another name. */
        {"e.n.weight 16", "e.classifier.weight e.classifier.bias", 0, 0, NULL},
        {"e.c.weight 16,8,3,3 e.c.bias 16", "e.proj.weight e.proj.bias", 0, 0, NULL},
    };
    check(cases, N_OF(cases));
}

/* Told how many elements there are, they are those, and no estimate; or they are others, and all are counted as told. */
static void a_count_settles_what_was_assumed(void **state)
{
    (void)state;
    static const assumption a = {"e.c.weight 16,8,3,3 e.n.weight 16", "e.fc.weight e.fc.bias", 0, 0,
                                 NULL};
    const uint64_t all = 16 * 8 * 9 + 16 + 1000 * 17;
    found f = assume(&a, all);
    assert_int_equal(f.elems, 1000 * 17);
    assert_true(f.is_note);
    assert_non_null(strstr(f.text, "as many elements as --parameters tells"));
    f = assume(&a, all + 5);
    assert_int_equal(f.elems, 1000 * 17 + 5);
    assert_int_equal(f.text[0], '\0');
    f = assume(&a, all - 5);
    assert_int_equal(f.elems, 1000 * 17 - 5);
    assert_int_equal(f.text[0], '\0');
}

/* A norm whose statistics the pass writes ran, though nothing reads what it gave. */
static void layers_that_ran_without_a_reader_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *listed, *told;
    } cases[] = {
        {"n.weight n.bias ~n.running_mean ^n.running_mean", "1 batch norms ran"},
        {"n.weight n.bias ~n.running_mean", NULL},
        {"~c.running_mean ^c.running_mean", NULL}, /* it is in the file */
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        uint64_t run = 0;
        trainer t;
        const assumption a = {"c.weight 16", cases[i].listed, 0, 0, NULL};
        model *m = open_network(&a, &run);
        trainer_open_model(&t, m);
        onv_train_options options = {.optimizer = onv_optimizer_find("sgd"),
                                     .lower = {.loss = ONV_LOSS_NONE, .reports = true}};
        (void)trainer_run(&t, &options);
        const char *told = NULL;
        for (size_t k = 0; k < t.model.diags.count; k++)
            if (strcmp(t.model.diags.at[k].code, "unread-layers") == 0)
                told = t.model.diags.at[k].message;
        assert_int_equal(told != NULL, cases[i].told != NULL);
        if (told != NULL) assert_non_null(strstr(told, cases[i].told));
        trainer_close(&t);
        model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_convolutions),
        cmocka_unit_test(convolutions_in_a_row),
        cmocka_unit_test(numbers_alone_are_no_likeness),
        cmocka_unit_test(stages_double),
        cmocka_unit_test(stages_of_a_pyramid),
        cmocka_unit_test(classifiers),
        cmocka_unit_test(a_count_settles_what_was_assumed),
        cmocka_unit_test(layers_that_ran_without_a_reader_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
