/* Units and the named plans: where they cut, and how lists of them are read. */
#include "ckpt/names.h"
#include "ckpt/taped.h"
#include "support/test.h"

/* A chain of `n` products, [16, 64] each, without names that could tell modules. */
static model *chain(int n)
{
    model *m = model_read(17, "in v0 f32[16,64]");
    for (int i = 1; i <= n; i++) {
        char weight[16], name[16], inputs[48], output[16];
        snprintf(weight, sizeof weight, "w%d", i);
        snprintf(name, sizeof name, "n%d", i);
        snprintf(output, sizeof output, "v%d", i);
        snprintf(inputs, sizeof inputs, "v%d w%d", i - 1, i);
        model_weight(m, weight, "f32[64,64]");
        model_node(m, "MatMul", name, inputs, output, "");
        if (i == n) model_output(m, output, "f32");
    }
    return m;
}

/* "0-2 3-5" */
static const char *text_of(const onv_ckpt_plan *plan)
{
    static char text[1024];
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < plan->n_segments; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%u-%u", i > 0 ? " " : "",
                                   plan->segments[i].first_op, plan->segments[i].last_op);
    return text;
}

static void expect_plan(taped *t, const char *list, const char *name, const char *segments)
{
    onv_ckpt_plans plans = taped_plans(t, list);
    assert_int_equal(plans.at.count, 1);
    assert_string_equal(plans.at.at[0].name, name);
    assert_string_equal(text_of(&plans.at.at[0]), segments);
    onv_ckpt_plans_cleanup(&plans);
}

/* torch.utils.checkpoint.checkpoint_sequential(functions, segments): segment_size = n // segments;
 * all but the last segment have that size, the last one runs from there to the end, unchecked. */
TEST(segments_are_cut_as_pytorch_does)
{
    taped t;
    OWNED_MODEL m = chain(11);
    taped_open_model(&t, m);
    assert_int_equal(t.units.count, 11);
    expect_plan(&t, "none", "none", "");
    expect_plan(&t, "segments=1", "segments=1", "");
    expect_plan(&t, "segments=2", "segments=2", "0-4");         /* 5, then 6 kept */
    expect_plan(&t, "segments=3", "segments=3", "0-2 3-5");     /* 3, 3, then 5 kept */
    expect_plan(&t, "segments=4", "segments=4", "0-1 2-3 4-5"); /* 2, 2, 2, then 5 kept */
    expect_plan(&t, "segments=11", "segments=11", "0-0 1-1 2-2 3-3 4-4 5-5 6-6 7-7 8-8 9-9");
    expect_plan(&t, "every=3", "every=3", "0-2 3-5 6-8"); /* then 2 kept */
    expect_plan(&t, "every=11", "every=11", "");
    expect_plan(&t, "every=100", "every=100", "");
    expect_plan(&t, "sqrt", "sqrt", "0-3 4-7"); /* by bytes, where the first one keeps just x */
    taped_close(&t);
}

/* nn.Sequential(Linear, Softplus, Linear, Flatten, Linear): five modules, of which the fourth does no
 * work and so is no unit. */
static model *sequential(void)
{
    model *m = model_read(17, "in x f32[16,64]");
    for (int i = 0; i < 3; i++) {
        char weight[16];
        snprintf(weight, sizeof weight, "w%d", i);
        model_weight(m, weight, "f32[64,64]");
    }
    model_add(m, "ints shape 16 64", "a = MatMul(x w0) /0/MatMul", "b = Softplus(a) /1/Softplus",
              "c = MatMul(b w1) /2/MatMul", "d = Reshape(c shape) /3/Reshape",
              "e = MatMul(d w2) /4/MatMul", "out e f32");
    return m;
}

/* The functions are modules, and the loop holds what comes into the last part until it returns. */
TEST(segments_of_a_sequential_are_its_modules)
{
    taped t;
    OWNED_MODEL m = sequential();
    taped_open_model(&t, m);
    assert_int_equal(t.units.count, 4);
    expect_plan(&t, "segments=2", "segments=2", "0-1"); /* two of five, then three kept */
    expect_plan(&t, "segments=5", "segments=5", "0-0 1-1 2-2 3-3");
    onv_ckpt_plans plans = taped_plans(&t, "segments=2");
    assert_int_equal(plans.at.at[0].sequential, 2);
    assert_int_equal(plans.at.at[0].loop_from, 2);
    onv_ckpt_apply(&plans.at.at[0], &t.options);
    onv_train_program with = taped_program(&t, t.options.segments, 1);
    t.options.loop_from =
        3; /* the result of the second product, which the third one keeps anyway */
    onv_train_program saved = taped_program(&t, t.options.segments, 1);
    const char *last = "";
    for (size_t i = 0; i < with.timeline.buffers.count; i++)
        if (with.timeline.buffers.at[i].last != saved.timeline.buffers.at[i].last) last = "differs";
    assert_string_equal(last, ""); /* both are saved by products */
    onv_train_program_cleanup(&with);
    onv_train_program_cleanup(&saved);
    onv_ckpt_plans_cleanup(&plans);
    taped_close(&t);
}

/* A sum keeps no operand: what comes into the last part stays for the loop alone. */
TEST(the_loop_holds_the_last_input)
{
    taped t;
    OWNED_MODEL m = model_read(17, "in x f32[16,64]");
    for (int i = 0; i < 3; i++) model_weight(m, (char[]){'w', (char)('0' + i), '\0'}, "f32[64,64]");
    model_add(m, "a = MatMul(x w0) /0/MatMul", "b = Add(a x) /1/Add", "c = MatMul(b w1) /2/MatMul",
              "d = MatMul(c w2) /3/MatMul", "out d f32");
    taped_open_model(&t, m);
    onv_train_program without = taped_program(&t, NULL, 0);
    t.options.loop_from = 1;
    onv_train_program with = taped_program(&t, NULL, 0);
    uint32_t n_longer = 0;
    assert_int_equal(with.timeline.buffers.count, without.timeline.buffers.count);
    for (size_t i = 0; i < with.timeline.buffers.count; i++)
        n_longer += with.timeline.buffers.at[i].last > without.timeline.buffers.at[i].last;
    assert_int_equal(n_longer, 3); /* in each iteration that of /0/MatMul */
    onv_train_program_cleanup(&with);
    onv_train_program_cleanup(&without);
    taped_close(&t);
}

TEST(lists_are_checked)
{
    static const struct {
        const char *list, *message;
    } bad[] = {
        {"", "--checkpoint: '' is unknown"},
        {"none,", "--checkpoint: '' is unknown"},
        {"square", "--checkpoint: 'square' is unknown"},
        {"none=2", "'none=2' is just 'none'"},
        {"every", "'every' takes a count"},
        {"every=", "'every=' takes a count"},
        {"every=0", "'every=0' takes a count"},
        {"segments=-1", "takes a count"},
        {"segments=99999999999", "takes a count"},
        {"every=2x", "takes a count"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        onv_error err = {0};
        assert_int_equal(onv_ckpt_check_list(bad[i].list, &err), ONV_ERR_USAGE);
        if (strstr(err.message, bad[i].message) == NULL)
            fail_msg("'%s': %s", bad[i].list, err.message);
    }
    onv_error err = {0};
    assert_int_equal(onv_ckpt_check_list("all", &err), ONV_OK);
    assert_int_equal(
        onv_ckpt_check_list("none,sqrt,every=7,segments=4294967200,blocks,optimal", &err), ONV_OK);
    char many[40 * 5 + 1] = "";
    for (int i = 0; i < 40; i++) strcat(many, "none,");
    many[strlen(many) - 1] = '\0';
    assert_int_equal(onv_ckpt_check_list(many, &err), ONV_ERR_LIMIT);

    taped t;
    OWNED_MODEL m = chain(3);
    taped_open_model(&t, m);
    onv_ckpt_plans plans;
    err = (onv_error){0};
    assert_int_equal(onv_ckpt_make(&t.flow.model, &t.eager, t.problem.pricing, NULL, &t.options,
                                   (onv_ckpt_wanted){.list = "segments=4"}, &plans, &err),
                     ONV_ERR_USAGE);
    assert_non_null(strstr(err.message, "3 units"));
    taped_close(&t);
}

/* What overwrites its input cannot begin a segment, a residual branch has no cut inside, and a
 * reshape does no work of its own. */
TEST(units_end_where_one_tensor_crosses)
{
    OWNED_MODEL m = model_read(17, "in x f32[2,8,16,16]");
    for (int i = 1; i <= 4; i++) {
        char weight[16];
        snprintf(weight, sizeof weight, "w%d", i);
        model_weight(m, weight, "f32[8,8,3,3]");
    }
    model_add(m, "ints shape 2 2048", "weight fc f32[2048,10]");
    model_node(m, "Conv", "c1", "x w1", "a", "pads=[1,1,1,1]"); /* op 0 */
    model_node(m, "Relu", "r1", "a", "b", "");                  /* op 1, in place */
    model_node(m, "Conv", "c2", "b w2", "c", "pads=[1,1,1,1]"); /* op 2 */
    model_node(m, "Relu", "r2", "c", "d", "");                  /* op 3, in place */
    model_node(m, "Conv", "c3", "d w3", "e", "pads=[1,1,1,1]"); /* op 4 */
    model_node(m, "Add", "sum", "e b", "f", "");                /* op 5 */
    model_node(m, "Conv", "c4", "f w4", "g", "pads=[1,1,1,1]"); /* op 6 */
    model_node(m, "Reshape", "flat", "g shape", "h", "");       /* op 7 */
    model_node(m, "MatMul", "head", "h fc", "y", "");           /* op 8 */
    model_output(m, "y", "f32");
    taped t;
    taped_open_model(&t, m);
    static const onv_tape_segment expected[] = {{0, 1}, {2, 5}, {6, 7}, {8, 8}};
    assert_int_equal(t.units.count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(t.units.at[i].first_op, expected[i].first_op);
        assert_int_equal(t.units.at[i].last_op, expected[i].last_op);
    }
    const uint64_t conv = 2 * 8 * 16 * 16 * 8 * 9, image = 2 * 8 * 16 * 16 * 4;
    assert_int_equal(t.units.at[0].in, ONV_NO_TENSOR);
    assert_int_equal(t.units.at[0].macs, conv);
    assert_int_equal(t.units.at[0].saved_bytes, image); /* the result of the first relu */
    assert_int_equal(t.units.at[1].macs, 2 * conv);
    assert_int_equal(t.units.at[1].saved_bytes, image); /* that of the second */
    assert_int_equal(t.units.at[2].saved_bytes, image); /* the sum */
    assert_int_equal(t.units.at[3].saved_bytes, image); /* the flattened image */
    assert_true(t.units.is_cut[7]);
    taped_close(&t);
}

/* The modules of the blocks, with commas. */
static void expect_blocks(const char *sample, const char *dims, const char *expected)
{
    taped t;
    onv_error err = {0};
    onv_scopes scopes;
    onv_borders borders;
    onv_namer namer;
    onv_arena arena;
    char text[2048] = "";
    size_t length = 0;
    taped_open_sample(&t, sample, dims, ONV_UNDEFINED);
    onv_ckpt_plans plans = taped_plans(&t, "blocks");
    onv_arena_init(&arena, SIZE_MAX);
    assert_int_equal(onv_scopes_find(&t.flow.model, &t.eager, &arena, &scopes, &err), ONV_OK);
    assert_int_equal(onv_borders_find(&t.flow.model, &t.eager, &scopes, &arena, &borders, &err),
                     ONV_OK);
    assert_int_equal(
        onv_namer_init(&namer, &t.flow.model, &t.eager, &scopes, &borders, &arena, &err), ONV_OK);
    const onv_ckpt_plan *plan = &plans.at.at[0];
    for (uint32_t i = 0; i < plan->n_segments; i++) {
        onv_segment_names names;
        assert_int_equal(onv_segment_name(&namer, plan->segments[i], &names, &err), ONV_OK);
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i > 0 ? "," : "",
                                   names.modules != NULL ? names.modules : "?");
        assert_true(length < sizeof text);
        assert_true(names.first != NULL && names.last != NULL);
    }
    onv_scopes_cleanup(&scopes);
    onv_arena_cleanup(&arena);
    onv_ckpt_plans_cleanup(&plans);
    taped_close(&t);
    assert_string_equal(text, expected);
}

TEST(blocks_are_repeated_modules)
{
    expect_blocks("resnet18-train.onnx", "batch=2",
                  "layer1.0,layer1.1,layer2.0,layer2.1,layer3.0,layer3.1,layer4.0,layer4.1");
    expect_blocks("vit-small-train.onnx", "batch=2",
                  "encoder.layers.encoder_layer_0,encoder.layers.encoder_layer_1,"
                  "encoder.layers.encoder_layer_2,encoder.layers.encoder_layer_3");
    /* No cuts between levels: the outermost lists. */
    expect_blocks("unet-train.onnx", "batch=2 height=64 width=64",
                  "down.0,down.1,down.2,down.3,merge.3,merge.2,merge.1,merge.0");
    expect_blocks("densenet201.onnx", "batch=2",
                  "features.denseblock1,features.denseblock2,features.denseblock3,"
                  "features.denseblock4");
    /* By the metadata of nodes; equal weights of all norms are one there. */
    expect_blocks("resnet18-dynamo.onnx", "batch=2",
                  "layer1.0,layer1.1,layer2.0,layer2.1,layer3.0,layer3.1,layer4.0,layer4.1");
    expect_blocks("bert-dynamo.onnx", "batch=2 sequence=32",
                  "model.encoder.layer.0,model.encoder.layer.1,model.encoder.layer.2,"
                  "model.encoder.layer.3");
    expect_blocks("llama-dynamo.onnx", "batch=2 sequence=32 total=32 past=0",
                  "model.model.layers.0,model.model.layers.1,model.model.layers.2,"
                  "model.model.layers.3");
}

/* As torchvision's RegNet calls its own: members of a list whose names are no plain numbers. */
TEST(blocks_with_dashes)
{
    OWNED_MODEL m = model_read(17, "in v0 f32[16,64]");
    for (int i = 0; i < 3; i++) {
        char weight[32], product[32], inputs[64], output[16], name[64];
        snprintf(weight, sizeof weight, "w%d", i);
        snprintf(product, sizeof product, "p%d", i);
        snprintf(output, sizeof output, "v%d", i + 1);
        snprintf(inputs, sizeof inputs, "v%d %s", i, weight);
        snprintf(name, sizeof name, "/trunk/block2/block2-%d/f/MatMul", i);
        model_weight(m, weight, "f32[64,64]");
        model_node(m, "MatMul", name, inputs, product, "");
        snprintf(name, sizeof name, "/trunk/block2/block2-%d/f/Softplus", i);
        snprintf(inputs, sizeof inputs, "s%d v%d", i, i);
        model_node(m, "Softplus", name, product, (char[]){'s', (char)('0' + i), '\0'}, "");
        snprintf(name, sizeof name, "/trunk/block2/block2-%d/Add", i);
        model_node(m, "Add", name, inputs, output, "");
    }
    model_output(m, "v3", "f32");
    taped t;
    taped_open_model(&t, m);
    onv_ckpt_plans plans = taped_plans(&t, "blocks");
    onv_segment_names names;
    onv_error err = {0};
    assert_string_equal(text_of(&plans.at.at[0]), "0-2 3-5 6-8");
    assert_int_equal(onv_segment_name(&t.places.namer, plans.at.at[0].segments[1], &names, &err),
                     ONV_OK);
    assert_string_equal(names.modules, "trunk.block2.block2-1");
    assert_string_equal(names.begin, "enter trunk.block2.block2-1 1");
    onv_ckpt_plans_cleanup(&plans);
    taped_close(&t);
}

/* What comes before the first block makes nothing with a gradient: that block counts, too. */
TEST(blocks_begin_before_gradients_do)
{
    OWNED_MODEL m = model_read(17, "in x f32[16,64]", "v0 = Sigmoid(x) /scale/Sigmoid");
    for (int i = 0; i < 3; i++) {
        char name[3][48], in[128], out[16];
        snprintf(in, sizeof in, "w%d", i);
        model_weight(m, in, "f32[64,64]");
        snprintf(name[0], sizeof name[0], "/blocks.%d/MatMul", i);
        snprintf(name[1], sizeof name[1], "/blocks.%d/Tanh", i);
        snprintf(name[2], sizeof name[2], "/blocks.%d/Add", i);
        snprintf(in, sizeof in, "v%d w%d", i, i);
        model_node(m, "MatMul", name[0], in, name[0] + 1, "");
        model_node(m, "Tanh", name[1], name[0] + 1, name[1] + 1, "");
        snprintf(in, sizeof in, "%s v%d", name[1] + 1, i);
        snprintf(out, sizeof out, "v%d", i + 1);
        model_node(m, "Add", name[2], in, out, "");
    }
    model_output(m, "v3", "f32");
    taped t;
    taped_open_model(&t, m);
    expect_plan(&t, "blocks", "blocks", "1-3 4-6 7-9");
    taped_close(&t);
}

/* Without names, what repeats itself: residual sums. */
TEST(blocks_without_names)
{
    OWNED_MODEL m = model_read(17, "in v0 f32[16,64]");
    for (int i = 0; i < 3; i++) {
        char weight[16], product[16], inputs[48], output[16], name[16];
        snprintf(weight, sizeof weight, "w%d", i);
        snprintf(product, sizeof product, "p%d", i);
        snprintf(output, sizeof output, "v%d", i + 1);
        snprintf(inputs, sizeof inputs, "v%d %s", i, weight);
        snprintf(name, sizeof name, "mm%d", i);
        model_weight(m, weight, "f32[64,64]");
        model_node(m, "MatMul", name, inputs, product, "");
        snprintf(inputs, sizeof inputs, "%s v%d", product, i);
        snprintf(name, sizeof name, "add%d", i);
        model_node(m, "Add", name, inputs, output, "");
    }
    model_output(m, "v3", "f32");
    taped t;
    taped_open_model(&t, m);
    /* v0 needs no gradient, so the first sum has but one operand that does. */
    expect_plan(&t, "blocks", "blocks", "2-3 4-5");
    taped_close(&t);
}

/* Every plan of the list saves less than none, and its program says the same as the plan. */
TEST(plans_say_what_their_programs_do)
{
    taped t;
    taped_open_sample(&t, "mobilenet_v2-train.onnx", "batch=8", ONV_UNDEFINED);
    onv_ckpt_plans plans = taped_plans(&t, "all");
    assert_string_equal(plans.at.at[0].name, "none");
    assert_true(plans.at.count > 5);
    for (size_t i = 1; i < plans.at.count; i++) {
        const onv_ckpt_plan *plan = &plans.at.at[i];
        onv_ckpt_apply(plan, &t.options);
        onv_train_program program = taped_program(&t, plan->segments, plan->n_segments);
        onv_peak peak;
        assert_int_equal(onv_timeline_peak(&program.timeline, &peak, NULL, NULL), ONV_OK);
        assert_int_equal(peak.bytes, plan->requested_bytes);
        assert_int_equal(onv_timeline_peak_without(&program.timeline, ONV_BUFFERS_BESIDE_TENSORS,
                                                   &peak, NULL, NULL),
                         ONV_OK);
        assert_int_equal(peak.bytes, plan->peak_bytes);
        assert_int_equal(program.recomputed_macs, plan->recomputed_macs);
        assert_true(plan->peak_bytes < plans.at.at[0].peak_bytes);
        assert_true(plan->item > 0 && plan->item <= 4);
        onv_train_program_cleanup(&program);
    }
    onv_ckpt_plans_cleanup(&plans);
    taped_close(&t);
}

/* Modules that run again are Python's code: a name that is not bound again stays there, too, until the run ends. */
TEST(names_hold_results_in_second_runs)
{
    static const char *const lines[][4] = {
        {"h = f(x)", "h = neg(h)", "h = neg(h)", "return exp(h)"},
        {"h = f(x)", "a = neg(h)", "b = neg(a)", "return exp(b)"},
    };
    uint64_t peaks[2];
    for (size_t i = 0; i < 2; i++) {
        static const char *const ops[] = {"MatMul", "Neg", "Neg", "Exp"};
        static const char *const values[] = {"h", "a", "b", "y"}, *const inputs[] = {"x w", "h",
                                                                                     "a", "b"};
        taped t;
        onv_peak peak;
        onv_error err = {0};
        OWNED_MODEL m =
            model_read(17, "in x f32[1024,256]", "weight w f32[256,256]", "role w PARAMETER");
        for (unsigned k = 0; k < 4; k++) {
            model_add(m, "source net call", "class Net aten.neg.default");
            model_statement(m, 10 + k, lines[i][k]);
            model_node(m, ops[k], "", inputs[k], values[k], "");
        }
        model_output(m, "y", "f32");
        taped_open_model(&t, m);
        onv_train_program program = taped_program(&t, &(onv_tape_segment){1, 3}, 1);
        assert_int_equal(onv_timeline_peak_without(&program.timeline, ONV_BUFFERS_BESIDE_TENSORS,
                                                   &peak, NULL, &err),
                         ONV_OK);
        peaks[i] = peak.of_phase[ONV_PHASE_BACKWARD];
        onv_train_program_cleanup(&program);
        taped_close(&t);
    }
    assert_int_equal(peaks[1], peaks[0] + 1024 * 256 * 4);
}
