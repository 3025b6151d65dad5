/* Constants that exporters computed of parameters by more than views: what the forward pass computes, and keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "eager/noted_network.h"
#include "eager/pass.h"
#include "eager/trainer.h"

/* Bytes of x, of x W, and of W. */
enum { X = 4 * 8 * 4, H = 4 * 6 * 4, W = 8 * 6 * 4 };

/* `y = op(x W, constant)`. */
typedef struct term {
    const char *name, *type, *op, *aten;
    const char *from, *listed;  /* beside the layer's weight */
    const char *in_file;        /* "name type", or NULL */
    uint64_t told;              /* --parameters */
    uint64_t parameters, saved; /* beside the layer's weight, and what the layer keeps */
    bool is_assumed;
    uint32_t width; /* of the layer, if not 6 */
} term;

typedef struct found {
    uint64_t parameters, saved;
    bool is_assumed, is_folded;
} found;

static found train(const term *c)
{
    char listed[128], inputs[64], name[32], type[32];
    model *m = model_new(18);
    model_input(m, "x", "f32[4,8]");
    snprintf(type, sizeof type, "f32[8,%u]", c->width > 0 ? c->width : 6);
    model_weight(m, "val_1", type);
    model_weight(m, c->name, c->type);
    if (c->in_file != NULL) {
        assert_int_equal(sscanf(c->in_file, "%31s %31s", name, type), 2);
        model_weight(m, name, type);
        model_role(m, name, "PARAMETER");
    }
    snprintf(listed, sizeof listed, "fc.weight %s", c->listed);
    model_parameters(m, listed);
    if (c->from != NULL) model_folded(m, c->name, c->from);
    model_source(m, "fc", "linear");
    model_class(m, LINEAR, "aten.linear.default");
    model_node(m, "MatMul", "h", "x val_1", "h", "");
    snprintf(inputs, sizeof inputs, "h %s", c->name);
    model_source(m, "", "last");
    model_class(m, "zoo.Net", c->aten);
    model_node(m, c->op, "y", inputs, "y", "");
    model_output(m, "y", "f32");
    trainer t;
    trainer_open_model(&t, m);
    onv_train_options how = {
        .optimizer = onv_optimizer_find("sgd"),
        .lower = {.loss = ONV_LOSS_NONE, .reports = true, .parameters = c->told}};
    onv_training_figures figures = trainer_run(&t, &how).figures;
    found f = {.parameters = figures.parameter_bytes, .saved = figures.saved_activation_bytes};
    for (size_t i = 0; i < t.model.diags.count; i++) {
        f.is_assumed |= strcmp(t.model.diags.at[i].code, "assumed-sizes") == 0;
        f.is_folded |= strcmp(t.model.diags.at[i].code, "folded-layers") == 0;
    }
    trainer_close(&t);
    model_free(m);
    return f;
}

/* The notes name calls in no order: which one reads which follows from their kinds, from shapes, and from parameters that the
 * file has. Parameters have sizes of their own, and results that backward reads are kept. */
static void notes_tell_what_is_computed_of_parameters(void **state)
{
    enum { A = 6 * 6 * 4 }; /* bytes of a graph of 6 nodes */
    (void)state;
    static const term terms[] = {
        /* The graph of which the nodes' embeddings are in the file: both functions, and what is multiplied. */
        {"softmax", "f32[6,6]", "MatMul", "aten.matmul.default",
         "['mm', 'nodes', 'relu', 'transpose']", "nodes", "nodes f32[6,3]", 0, 6 * 3 * 4, 2 * A + H,
         false, 0},
        /* Two of them, which are not there. */
        {"softmax", "f32[6,6]", "MatMul", "aten.matmul.default", "['mm', 'e1', 'e2', 'relu']",
         "e1 e2", NULL, 0, 2 * 6 * 8 * 4, 2 * A + H, true, 0},
        {"softmax", "f32[6,6]", "MatMul", "aten.matmul.default", "['mm', 'e1', 'e2', 'relu']",
         "e1 e2", NULL, 8 * 6 + 2 * 6 * 3, 2 * 6 * 3 * 4, 2 * A + H, false, 0},
        /* A factor. */
        {"exp", "f32[]", "Mul", "aten.mul.Tensor", "['scale']", "scale", NULL, 0, 4, 4 + H, false,
         0},
        /* A layer of a query that all samples are given, beside a layer of that width. */
        {"linear", "f32[4,6]", "Add", "aten.add.Tensor",
         "['q', 'q_proj.bias', 'q_proj.weight', 'repeat', 'val_2']", "q q_proj.bias q_proj.weight",
         "q f32[1,6]", 0, (6 + 6 * 6 + 6) * 4, H, false, 0},
        /* Layers, with a function between, of a vector. */
        {"view", "f32[6,6]", "MatMul", "aten.matmul.default",
         "['linear', 'linear_1', 'n.0.bias', 'n.0.weight', 'n.2.bias', 'n.2.weight', 'relu', 'z']",
         "n.0.bias n.0.weight n.2.bias n.2.weight z", "z f32[5]", 8 * 6 + 5 + 6 * 4 + 5 * 36,
         (5 + 6 * 4 + 5 * 36) * 4, A + 4 * 4 + H, false, 0},
        /* Rows are divided by their norms, of which there is a smallest one. */
        {"div", "f32[6,6]", "MatMul", "aten.matmul.default",
         "['clamp_min', 'expand', 'linalg_vector_norm', 'w']", "w", NULL, 0, A, A + 2 * 6 * 4 + H,
         false, 0},
        {"mul", "f32[6,6]", "MatMul", "aten.matmul.default",
         "['div', 'f.weight.original0', 'f.weight.original1', 'linalg_vector_norm']",
         "f.weight.original0 f.weight.original1", NULL, 0, A + 6 * 4, A + 6 * 4 + H, false, 0},
        /* A product that is added to a weight, which may be smaller for all that is told. */
        {"add", "f32[6,6]", "MatMul", "aten.matmul.default",
         "['lora_a', 'lora_b', 'matmul', 'mul', 'w']", "lora_a lora_b w", "lora_a f32[2,6]", 0,
         A + 2 * 2 * 6 * 4, A + H, true, 0},
        /* Two of them, each times the other. */
        {"mul", "f32[6,6]", "MatMul", "aten.matmul.default",
         "['a_1', 'a_2', 'b_1', 'b_2', 'matmul', 'matmul_1']", "a_1 a_2 b_1 b_2", NULL,
         8 * 6 + 4 * 6 * 2, 4 * 6 * 2 * 4, 3 * A + H, false, 0},
        /* Slopes of heads, times distances. */
        {"mul", "f32[2,6,6]", "MatMul", "aten.matmul.default",
         "['abs_1', 'arange', 'neg', 'slopes', 'sub', 'unsqueeze', 'view']", "slopes", NULL, 0,
         2 * 4, 3 * A + H, false, 0},
        /* Biases between places of a window of 2 by 2, by a network of their distances, of which the file has no table: its
         * hidden layer has a width that nothing else tells. */
        {"unsqueeze", "f32[1,2,4,4]", "MatMul", "aten.matmul.default",
         "['clone', 'index', 'linear', 'linear_1', 'm.0.bias', 'm.0.weight', 'm.2.weight', 'mul', "
         "'permute', 'places', 'relu', 'scalar_tensor_default_1', 'sigmoid', 'table', 'view', "
         "'view_1']",
         "m.0.bias m.0.weight m.2.weight ~places ~table", NULL, 8 * 4 + 5 * 7, 5 * 7 * 4,
         9 * 7 * 4 + 2 * (2 * 16 * 4) + 4 * 4 * 4, false, 4},
        /* Weights of nodes, of a pool of them: the pool has what the constant has, for each of the embeddings' values. */
        {"einsum", "f32[6,6,2]", "MatMul", "aten.matmul.default", "['nodes', 'pool']", "nodes pool",
         "nodes f32[6,3]", 0, (6 * 3 + 3 * 6 * 2) * 4, 2 * A + H, false, 0},
        /* An identity beside a graph. */
        {"stack", "f32[2,6,6]", "MatMul", "aten.matmul.default",
         "['_to_copy', 'arange', 'eq', 'mm', 'nodes', 'transpose', 'unsqueeze']", "nodes",
         "nodes f32[6,3]", 0, 6 * 3 * 4, 2 * A + H, false, 0},
    };
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
        found f = train(&terms[i]);
        uint32_t weight = terms[i].width > 0 ? 8 * terms[i].width * 4 : W;
        assert_int_equal(f.parameters, weight + terms[i].parameters);
        assert_int_equal(f.saved, X + terms[i].saved);
        assert_int_equal(f.is_assumed, terms[i].is_assumed);
        assert_false(f.is_folded);
    }
}

/* Names that no term fits: as many calls and parameters as are looked at, and more of them. Results of layers are reported. */
static void notes_without_a_term_are_reported(void **state)
{
    (void)state;
    for (uint32_t n = 8; n <= 32; n += 12) {
        char from[1024] = "['a.weight', 'b', 'c.weight', 'd', 'linear'",
             listed[] = "a.weight b c.weight d";
        size_t used = strlen(from);
        for (uint32_t i = 1; i <= n; i++)
            used += (size_t)snprintf(from + used, sizeof from - used, ", '%s_%u'",
                                     i % 3 == 0   ? "mul"
                                     : i % 3 == 1 ? "matmul"
                                                  : "einsum",
                                     i);
        snprintf(from + used, sizeof from - used, "]");
        const term hostile = {"add_1", "f32[6,6]", "MatMul", "aten.matmul.default",
                              from,    listed,     NULL,     0,
                              0,       0,          false,    0};
        assert_true(train(&hostile).is_folded);
    }
}

/* The same of calls that are all known, of which none gives the constant's shape. */
static void searches_for_terms_end(void **state)
{
    (void)state;
    char from[1024] = "['a', 'b', 'c', 'd', 'e', 'f'";
    size_t used = strlen(from);
    for (uint32_t i = 1; i <= 20; i++)
        used += (size_t)snprintf(from + used, sizeof from - used, ", '%s_%u'",
                                 i % 2 == 0 ? "mul" : "mm", i);
    snprintf(from + used, sizeof from - used, "]");
    const term hostile = {"softmax",
                          "f32[6,6]",
                          "MatMul",
                          "aten.matmul.default",
                          from,
                          "a b c d e f",
                          "a f32[5,7]",
                          0,
                          0,
                          0,
                          false,
                          0};
    assert_true(train(&hostile).is_folded);
}

/* Each note names the constant after it, and the last one the first: what is computed of each other ends. */
static void constants_may_name_each_other(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    for (int n = 2; n <= MANY; n += MANY - 2) {
        model *m = model_new(18);
        model_input(m, "x", "f32[4,8]");
        model_weight(m, "fc.weight", "f32[8,8]");
        model_role(m, "fc.weight", "PARAMETER");
        model_parameters(m, "fc.weight");
        for (int i = 0; i < n; i++) {
            char name[32], from[64], inputs[64], output[16], of[16];
            snprintf(name, sizeof name, "relu_%d", i);
            snprintf(from, sizeof from, "['relu_%d']", (i + 1) % n);
            model_weight(m, name, "f32[4,8]");
            model_folded(m, name, from);
            snprintf(output, sizeof output, "y_%d", i);
            snprintf(inputs, sizeof inputs, "x %s", name);
            snprintf(of, sizeof of, "mul_%d", i);
            add_call(m, "Mul", inputs, output, of);
        }
        add_call(m, "MatMul", "y_0 fc.weight", "y", "mm");
        model_output(m, "y", "f32");
        trainer t;
        trainer_open_model(&t, m);
        onv_train_options how = {.optimizer = onv_optimizer_find("sgd"),
                                 .lower = {.loss = ONV_LOSS_NONE, .reports = true}};
        assert_true(trainer_run(&t, &how).figures.parameter_bytes >= 8 * 8 * 4);
        trainer_close(&t);
        model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_tell_what_is_computed_of_parameters),
        cmocka_unit_test(notes_without_a_term_are_reported),
        cmocka_unit_test(searches_for_terms_end),
        cmocka_unit_test(constants_may_name_each_other),
    };
    return cmocka_run_group_tests_name("eager.terms", tests, NULL, NULL);
}
