/* One forward pass of the tape: what is overwritten, eval mode, branches and loops. */
#include "eager/pass.h"
#include "lower/lower.h"
#include "support/encoder.h"
#include "support/nested.h"
#include "support/test.h"

static uint64_t peak_of(model *m, const onv_lower_options *options)
{
    pass p;
    pass_run(&p, m, options);
    pass_drop(&p);
    return p.peak.bytes;
}

/* --- Modules ----------------------------------------------------------------------------------- */

static model *chain(const char *first, const char *second)
{
    model *m = model_read(17, "in x f32[1024]");
    model_node(m, first, "0", "x", "a", "");
    model_node(m, second, "1", "a", "b", "");
    model_add(m, "y = Exp(b) 2", "out y f32");
    return m;
}

/* x is the caller's and stays; what a module made may be overwritten. */
TEST(relu_overwrites_what_nobody_else_has)
{
    const onv_lower_options apart = {.no_inplace = true};
    assert_int_equal(peak_of(chain("Exp", "Relu"), NULL), 3 * 4096);
    assert_int_equal(peak_of(chain("Relu", "Relu"), NULL), 3 * 4096);
    pass p;
    pass_run(&p, chain("Exp", "Relu"), NULL);
    assert_null(pass_find(&p, "b"));
    assert_int_equal(pass_find(&p, "x")->last, 2);
    assert_int_equal(pass_find(&p, "y")->kind, ONV_BUFFER_OUTPUT);
    pass_drop(&p);
    pass_run(&p, chain("Exp", "Relu"), &apart);
    assert_non_null(pass_find(&p, "b"));
    pass_drop(&p);
}

/* Nothing is kept for a backward: no mask, no statistics of a batch; the counter of batches is a
 * buffer of the module. */
TEST(eval_drops_and_keeps_nothing)
{
    OWNED_PASS p;
    model *m = model_read(17, "in x f32[2,8,4,4]");
    static const char *const vectors[] = {"w", "b", "mean", "var"};
    for (size_t i = 0; i < 4; i++) model_weight(m, vectors[i], "f32[8]");
    model_node(m, "BatchNormalization", "0", "x w b mean var", "n", "");
    model_bool(m, "training", true);
    model_add(m, "d mask = Dropout(n - training) 1", "y = Exp(d) 2", "out y f32");
    pass_run(&p, m, NULL);
    assert_null(pass_find(&p, "d"));
    assert_null(pass_find(&p, "mask"));
    assert_int_equal(p.peak.bytes, 3 * 1024 + 4 * 32 + 8); /* x, n, y */
    assert_int_equal(pass_find(&p, "mean")->kind, ONV_BUFFER_STATISTIC);
    assert_int_equal(pass_find(&p, "w")->kind, ONV_BUFFER_WEIGHT);
}

/* --- Branches and loops ------------------------------------------------------------------------ */

/* By hand, in the terms of ideal liveness with what PyTorch shares. */
TEST(branches_and_bodies_by_hand)
{
    const onv_lower_options apart = {.no_inplace = true};
    OWNED_PASS p;
    model *m =
        model_read(17, "in x f32[1024]", "in c bool[]", "begin else_branch", "e1 = Exp(x) e1",
                   "e = Exp(e1) e2", "out e f32", "end", "begin then_branch", "t = Exp(x) t",
                   "out t f32", "end", "y = If(c) if", "z = Exp(y) after", "out z f32");
    pass_run(&p, m, &apart);
    assert_int_equal(p.peak.bytes, 1 + 3 * 4096); /* x and two more, never both branches */
    assert_int_equal(p.t.regions.count, 3);
    assert_int_equal(p.t.regions.at[0].kind, ONV_REGION_ALTERNATIVES);
    const onv_buffer *y = pass_find(&p, "y");
    uint32_t becoming = 0;
    for (size_t i = 0; i < p.t.buffers.count; i++)
        becoming += p.t.buffers.at[i].becomes == (uint32_t)(y - p.t.buffers.at);
    assert_int_equal(becoming, 2);
}

/* s is carried, y stacked: each iteration has what s comes in as and what it goes out as. */
TEST(loops_need_one_iteration_and_what_they_stack)
{
    for (int reads_again = 0; reads_again < 2; reads_again++) {
        OWNED_PASS p;
        model *m = model_read(17, "in x f32[1024]", "int trips 10");
        model_bool(m, "go", true);
        model_add(m, "s0 = Exp(x) 0", "begin body", "in i i64[]", "in go_in bool[]",
                  "in s_in f32[1024]", "go_out = Identity(go_in) go_on", "s_out = Exp(s_in) 1",
                  "slice = Exp(s_out) 2", "out go_out bool[]", "out s_out f32[1024]",
                  "out slice f32[1024]", "end", "s stacked = Loop(trips go s0) loop");
        model_node(m, "Add", "3", reads_again ? "s s0" : "s s", "y", "");
        model_add(m, "out y f32", "out stacked f32");
        pass_run(&p, m, NULL);
        assert_int_equal(p.t.regions.count, 1);
        assert_int_equal(p.t.regions.at[0].trips, 10);
        assert_int_equal(pass_find(&p, "stacked")->first, p.t.regions.at[0].first);
        /* x, the stack, the state in (s0 itself, or beside it where that is read later) and out, then
         * the state out and the slice; after the loop y. */
        assert_int_equal(p.peak.bytes, 4096 * (1 + 10 + 2 + reads_again));
        assert_int_equal(pass_find(&p, "s_in") != NULL, reads_again);
    }
}

TEST(scans_read_views)
{
    OWNED_PASS p;
    model *m =
        model_read(17, "in x f32[10,1024]", "in s0 f32[1024]", "begin body", "in s_in f32[1024]",
                   "in row f32[1024]", "s_out = Add(s_in row) 1", "slice = Exp(s_out) 2",
                   "out s_out f32[1024]", "out slice f32[1024]", "end",
                   "s y = Scan(s0 x) scan num_scan_inputs=1", "out s f32", "out y f32");
    pass_run(&p, m, NULL);
    assert_null(pass_find(&p, "row"));
    /* x, y, s0 (the caller's), the state of the iteration before, its sum; then sum and slice. */
    assert_int_equal(p.peak.bytes, 4096 * (10 + 10 + 1 + 2));
}

/* Whatever nests: the timeline is sound (onv_inference_build checks it), one path through it needs no
 * more than all of it, and results are there at the end. */
TEST(random_nests_are_sound)
{
    const onv_lower_options how[] = {
        {0}, {.no_inplace = true}, {.as_exported = true}, {.amp = ONV_FLOAT16}};
    for (uint64_t seed = 1; seed <= 300; seed++) {
        OWNED_PASS p;
        onv_timeline path = {0};
        onv_peak one;
        pass_run(&p, nested_random(seed), &how[seed % 4]);
        assert_int_equal(onv_timeline_path(&p.t, &path, NULL, NULL), ONV_OK);
        assert_int_equal(onv_timeline_check(&path, NULL), ONV_OK);
        assert_int_equal(onv_timeline_peak(&path, &one, NULL, NULL), ONV_OK);
        assert_true(one.bytes <= p.peak.bytes);
        for (size_t i = 0; i < p.t.buffers.count; i++)
            if (p.t.buffers.at[i].kind == ONV_BUFFER_OUTPUT)
                assert_int_equal(p.t.buffers.at[i].last, p.t.steps.count - 1);
        onv_timeline_cleanup(&path);
    }
    for (const nested_case *c = nested_cases; c->name != NULL; c++) {
        OWNED_MODEL m = nested_case_build(c);
        onv_analysis_destroy(model_analyse(m, NULL)); /* of its runtimes two are these */
    }
}

/* Training takes a branch that is decided, and says where it cannot go on. */
TEST(training_refuses_by_name)
{
    static const struct {
        const char *name, *message; /* NULL: it is lowered */
    } cases[] = {{"if", "both branches may run"}, {"loop", "a loop"}, {"constant", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_error err = {0};
        onv_eager eager;
        bool *is_host;
        OWNED_FLOW f;
        OWNED_MODEL m = model_read(17, "in x f32[8,8]", "weight w f32[8,8]");
        if (i == 2)
            model_bool(m, "c", true);
        else
            model_input(m, "c", "bool[]");
        model_int(m, "trips", 3);
        if (i == 1) {
            model_add(m, "begin body", "in i i64[]", "in go bool[]", "in s f32[8,8]",
                      "go1 = Identity(go) i0", "s1 = MatMul(s w) mm", "out go1 bool[]",
                      "out s1 f32[8,8]", "end", "y = Loop(trips c x) loop");
        } else {
            model_add(m, "begin else_branch", "e = Exp(x) e", "out e f32[8,8]", "end",
                      "begin then_branch", "t = MatMul(x w) mm", "out t f32[8,8]", "end");
            model_node(m, "If", cases[i].name, "c", "y", "");
        }
        model_output(m, "y", "f32[8,8]");
        flow_open_model(&f, m, NULL);
        assert_int_equal(onv_mark_host_values(&f.model, &f.live, &is_host, &err), ONV_OK);
        onv_status status =
            onv_eager_lower(&f.model, &f.live, is_host, &(onv_lower_options){0}, &eager, &err);
        if (cases[i].message == NULL) {
            assert_int_equal(status, ONV_OK);
            assert_int_equal(eager.outputs.count, 1); /* backward starts there */
            onv_eager_cleanup(&eager);
        } else {
            assert_int_equal(status, ONV_ERR_USAGE);
            assert_non_null(strstr(err.message, cases[i].message));
            assert_string_equal(err.node, cases[i].name);
        }
    }
}

static bool fast_peak(model *m, const onv_lower_options *options, uint64_t weights)
{
    pass p;
    onv_lower_options how = *options;
    how.reports = true;
    pass_run(&p, m, &how);
    uint64_t peak = p.peak.bytes, row = 4 * 2 * 4 * 16;
    pass_drop(&p);
    return peak == weights + (1 + 3 + 1 + 1) * row; /* x, projection, attention, its product */
}

/* The call holds the packed projection until it has the one behind the attention, and adds in place. */
TEST(encoder_layers_take_the_fast_path)
{
    static const struct {
        const char *perm, *bias; /* that of the older exporter's */
        bool is_fast;
        onv_lower_options how;
    } cases[] = {
        {NULL, "layers.0.self_attn.in_proj_bias", true, {.attention = ONV_ATTENTION_AUTO}},
        {NULL, "layers.0.self_attn.qkv.bias", false, {.attention = ONV_ATTENTION_AUTO}},
        {"perm=[1,0,2]", NULL, true, {.attention = ONV_ATTENTION_AUTO}},
        {"perm=[0,1,2]",
         NULL,
         false,
         {.attention = ONV_ATTENTION_AUTO}}, /* the batch is not first */
        {"perm=[1,0,2]", NULL, false, {.attention = ONV_ATTENTION_AUTO, .no_fast_path = true}},
        {"perm=[1,0,2]", NULL, false, {.attention = ONV_ATTENTION_MATH}},
        {"perm=[1,0,2]", NULL, false, {.attention = ONV_ATTENTION_AUTO, .graph_module = true}},
    };
    uint64_t products = 4 * (16 * 48 + 16 * 16), rest = 4 * (2 * 16 * 32 + 16);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *bias = cases[i].bias;
        model *m = bias != NULL ? encoder_layer_named(bias) : encoder_layer(cases[i].perm);
        uint64_t weights = (bias != NULL ? 4 * 48 : 0) + products + rest;
        if (fast_peak(m, &cases[i].how, weights) != cases[i].is_fast) fail_msg("case %zu", i);
    }
    onv_lower_options how = {.attention = ONV_ATTENTION_AUTO};
    assert_true(fast_peak(attention_module(false, false), &how, products));
    assert_false(fast_peak(attention_module(true, false), &how, products));
    assert_false(fast_peak(attention_module(false, true), &how, products + 128));
}

/* The exporter transposes a key of four axes as one of three: the call is one kernel all the same. */
TEST(keys_are_turned_in_three_axes)
{
    static const char call[] = "aten.scaled_dot_product_attention.default";
    static const struct {
        const char *aten; /* of what makes three axes of the key */
        int64_t back[4];
        const char *operations;
    } cases[] = {{call, {2, 2, 8, 6}, " efficient_attention"},
                 {"aten.reshape.default", {2, 2, 8, 6}, " view permute view t efficient_attention"},
                 {call,
                  {2, 2, 6, 8},
                  " view permute reshape expand view expand view bmm view softmax expand view "
                  "expand view bmm view"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char *const ops[][3] = {
            {"Reshape", "k three", "k1"}, {"Transpose", "k1", "k2"}, {"Reshape", "k2 four", "k3"},
            {"MatMul", "q k3", "s"},      {"Softmax", "s", "p"},     {"MatMul", "p v", "o"}};
        OWNED_PASS p;
        onv_lower_options how = {.attention = ONV_ATTENTION_AUTO};
        model *m = model_new(17);
        /* Of as many rows as columns where the key stays as it is. */
        const char *query = i == 2 ? "f32[2,2,6,6]" : "f32[2,2,6,8]";
        model_input(m, "x", query);
        model_input(m, "y", "f32[2,2,6,8]");
        model_input(m, "z", i == 2 ? "f32[2,2,8,8]" : "f32[2,2,6,8]");
        model_add(m, "q = Neg(x)", "k = Neg(y)", "v = Neg(z)", "ints three 4 6 8");
        model_ints(m, "four", 4, cases[i].back);
        for (size_t n = 0; n < sizeof ops / sizeof ops[0]; n++) {
            model_source(m, "at", "sdpa");
            model_class(m, "Net", n == 0 ? cases[i].aten : call);
            model_node(m, ops[n][0], "", ops[n][1], ops[n][2], n == 1 ? "perm=[0,2,1]" : "");
        }
        model_output(m, "o", "f32");
        pass_run(&p, m, &how);
        char names[256] = "";
        for (uint32_t k = 3; k < p.t.steps.count; k++)
            snprintf(names + strlen(names), sizeof names - strlen(names), " %s",
                     p.t.steps.at[k].label);
        if (strcmp(names, cases[i].operations) != 0) fail_msg("case %zu:%s", i, names);
    }
}

/* transformers leaves groups of queries to the kernel where nothing masks; the export repeats keys and values. */
TEST(groups_of_queries_are_the_kernels)
{
    static const char call[] = "aten.scaled_dot_product_attention.default";
    static const char *const ops[][3] = {
        {"Unsqueeze", "k axis", "k1"}, {"Expand", "k1 wide", "k2"},  {"Unsqueeze", "v axis", "v1"},
        {"Expand", "v1 wide", "v2"},   {"Reshape", "v2 rows", "v3"}, {"Reshape", "k2 three", "k3"},
        {"Transpose", "k3", "k4"},     {"Reshape", "k4 four", "k5"}, {"MatMul", "q k5", "s"},
        {"Add", "s mask", "t"},        {"Softmax", "t", "p"},        {"MatMul", "p v3", "o"}};
    static const struct {
        const char *class;
        bool is_input; /* the mask */
        bool is_grouped;
    } cases[] = {{"transformers.models.llama.modeling_llama.LlamaAttention", false, true},
                 {"transformers.models.llama.modeling_llama.LlamaAttention", true, false},
                 {"zoo.Attention", false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_PASS p;
        onv_lower_options how = {.attention = ONV_ATTENTION_AUTO, .reports = true};
        model *m = model_read(17, "in q f32[2,4,6,8]", "in k f32[2,2,6,8]", "in v f32[2,2,6,8]");
        if (cases[i].is_input)
            model_input(m, "mask", "f32[6,6]");
        else
            model_constant(m, "mask", "f32[1]");
        model_add(m, "ints axis 2", "ints wide 2 2 2 6 8", "ints rows 2 4 6 8", "ints three 8 6 8",
                  "ints four 2 4 8 6");
        for (size_t n = 0; n < sizeof ops / sizeof ops[0]; n++) {
            model_source(m, "at", n < 5 ? ops[n][2] : "sdpa");
            model_class(m, cases[i].class, n < 5 ? "aten.view.default" : call);
            bool is_turn = strcmp(ops[n][0], "Transpose") == 0;
            model_node(m, ops[n][0], "", ops[n][1], ops[n][2], is_turn ? "perm=[0,2,1]" : "");
        }
        model_output(m, "o", "f32");
        pass_run(&p, m, &how);
        bool is_alone = strcmp(p.t.steps.at[0].label, "efficient_attention") == 0;
        if (is_alone != cases[i].is_grouped || p.f.model.diags.count != cases[i].is_grouped)
            fail_msg("case %zu: %s, %zu notes", i, p.t.steps.at[0].label, p.f.model.diags.count);
    }
}

/* The older exporter has equal weights once, and that of a layer which shares a table turned: two parameters, or one. */
TEST(equal_parameters_may_be_one)
{
    enum { TABLE = 4 * 100 * 8, SQUARE = 4 * 8 * 8 };
    uint64_t peaks[4];
    for (int i = 0; i < 4; i++) {
        bool shares = i / 2 == 1;
        model *m = model_read(17, "in x i64[3]", "weight table f32[100,8]",
                              "weight onnx::MatMul_7 f32[8,8]");
        model_weight(m, "onnx::MatMul_9", shares ? "f32[8,100]" : "f32[8,101]");
        model_add(m, "onnx::MatMul_8 = Identity(onnx::MatMul_7) Identity_1",
                  "e = Gather(table x) /e/Gather", "a = MatMul(e onnx::MatMul_7) /a/MatMul",
                  "b = MatMul(a onnx::MatMul_8) /b/MatMul",
                  "c = MatMul(b onnx::MatMul_9) /c/MatMul", "out c f32");
        peaks[i] = peak_of(m, &(onv_lower_options){.least = i % 2 == 1});
    }
    assert_int_equal(peaks[0] - peaks[1], SQUARE);
    assert_int_equal(peaks[2] - peaks[3], SQUARE + TABLE);
}

/* The older exporter folds a batch norm and gives weight and bias names of its own: PyTorch runs the norm,
 * whose result is as large as the convolution's. */
TEST(folded_norms_run_again)
{
    static const struct {
        const char *weight, *bias;
        bool as_exported, folded;
        uint32_t norms;
    } cases[] = {{"onnx::Conv_10", "onnx::Conv_11", false, false, 1},
                 {"onnx::Conv_10", "onnx::Conv_11", true, false, 0},
                 {"onnx::Conv_10", "onnx::Conv_11", false, true, 0},
                 {"onnx::Conv_10", "conv.bias", false, false, 0}, /* a weight that was computed */
                 {"conv.weight", "conv.bias", false, false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char inputs[64];
        OWNED_PASS p;
        model *m = model_new(17);
        onv_lower_options how = {
            .as_exported = cases[i].as_exported, .folded_norms = cases[i].folded, .reports = true};
        model_input(m, "x", "f32[2,8,16,16]");
        model_weight(m, cases[i].weight, "f32[8,8,1,1]");
        model_weight(m, cases[i].bias, "f32[8]");
        snprintf(inputs, sizeof inputs, "a %s %s", cases[i].weight, cases[i].bias);
        model_node(m, "Neg", "/Neg", "x", "a", "");
        model_node(m, "Conv", "/block/conv/Conv", inputs, "b", "");
        model_add(m, "y = Neg(b) /Neg_1", "out y f32");
        pass_run(&p, m, &how);
        /* x, weights (and the norm's other vectors), and what is around the largest step. */
        uint64_t of = 4 * 2 * 8 * 16 * 16, weights = 4 * 8 * 8 + 4 * 8;
        uint64_t more = cases[i].norms > 0 ? 3 * 4 * 8 + 8 : 0;
        /* The convolution's module is over, and its argument gone, when the norm runs; but the block that
         * both are in came by it. */
        assert_int_equal(p.peak.bytes, (3 + cases[i].norms) * of + weights + more);
        assert_int_equal(p.f.model.diags.count, cases[i].norms);
        if (cases[i].norms > 0) assert_string_equal(p.f.model.diags.at[0].code, "folded-norms");
    }
}

static void assert_same_buffers(const onv_timeline *t, const onv_timeline *other)
{
    assert_int_equal(t->buffers.count, other->buffers.count);
    for (size_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *a = &t->buffers.at[i], *b = &other->buffers.at[i];
        assert_int_equal(a->bytes, b->bytes);
        assert_int_equal(a->first, b->first);
        assert_int_equal(a->last, b->last);
        assert_int_equal(a->kind, b->kind);
        assert_int_equal(a->value.index, b->value.index);
    }
}

/* An end of the range is lowered anew where the tape says that it would be another one, and only there; Relus need no
 * lowering for theirs. */
TEST(a_tape_says_for_which_end_it_is_another)
{
    static const struct {
        const char *node;
        bool least, most;
    } cases[] = {{"y = Relu(e) r", false, true},
                 {"r = Relu(e) r", false, true},
                 {"y = LeakyRelu(e) r", true, false},
                 {"y = Sigmoid(e) r", false, false},
                 {"w = Identity(weight) i", true, false}};
    static const char *const everywhere[] = {"*"};
    const onv_lower_options ends[] = {
        {.inference = true},
        {.least = true, .inplace = everywhere, .n_inplace = 1},
        {.relu_makes_new = true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pass p[3];
        for (size_t end = 0; end < 3; end++) {
            model *m = model_read(17, "in x f32[1024]", "weight weight f32[1024]");
            model_add(m, "e = Exp(x) e", cases[i].node);
            if (cases[i].node[0] == 'r') model_add(m, "v = Relu(r) v", "y = Tanh(v) y");
            if (cases[i].node[0] == 'w') model_add(m, "a = Add(e w) a", "y = Add(a weight) y");
            model_add(m, "z = Mul(y y) z", "out z f32");
            pass_run(&p[end], m, &ends[end]);
        }
        assert_int_equal(p[0].differs_least, cases[i].least);
        assert_int_equal(p[0].new_relus.steps.count > 0, cases[i].most);
        if (cases[i].most) assert_same_buffers(&p[0].new_relus, &p[2].t);
        assert_true(cases[i].least == (p[1].t.buffers.count != p[0].t.buffers.count));
        assert_true(cases[i].most == (p[2].t.buffers.count != p[0].t.buffers.count));
        for (size_t end = 0; end < 3; end++) pass_drop(&p[end]);
    }
}
