/* What the kernels that PyTorch has for whole layers keep: recurrent layers and attention, against sums by
 * hand. */
#include "eager/pass.h"
#include "eager/trainer.h"
#include "lower/lower.h"
#include "support/test.h"

/* --- Recurrent layers -------------------------------------------------------------------------- */

/* Two layers of 4 hidden values in two directions, over 6 steps of 3 samples of 8 values: both their
 * inputs and both their outputs are 576 bytes. */
enum { STEPS_OF_LAYER = 6 * 3 * 8 * 4 };

static void add_layer(model *m, const char *op, int gates, const char *in, const char *out,
                      const char *attributes)
{
    char names[3][32], type[32], inputs[128];
    for (int k = 0; k < 3; k++) snprintf(names[k], sizeof names[k], "%s.%c", out, "WRB"[k]);
    snprintf(type, sizeof type, "f32[2,%d,8]", gates * 4);
    model_weight(m, names[0], type);
    snprintf(type, sizeof type, "f32[2,%d,4]", gates * 4);
    model_weight(m, names[1], type);
    snprintf(type, sizeof type, "f32[2,%d]", gates * 8);
    model_weight(m, names[2], type);
    snprintf(inputs, sizeof inputs, "%s %s %s %s", in, names[0], names[1], names[2]);
    model_node(m, op, out, inputs, out, attributes);
}

static void expect_layers_keep(const char *op, int gates, uint64_t reserve, bool batch_first)
{
    const char *attributes = batch_first ? "hidden_size=4 layout=1 direction='bidirectional'"
                                         : "hidden_size=4 direction='bidirectional'";
    const char *permutation = batch_first ? "perm=[0,1,2,3]" : "perm=[0,2,1,3]";
    const int64_t joined[] = {0, 0, -1};
    OWNED_MODEL m = model_new(17);
    model_input(m, "x", batch_first ? "f32[3,6,8]" : "f32[6,3,8]");
    model_ints(m, "joined", 3, joined);
    add_layer(m, op, gates, "x", "first", attributes);
    model_node(m, "Transpose", "permute", "first", "a", permutation);
    model_node(m, "Reshape", "join", "a joined", "h", "");
    add_layer(m, op, gates, "h", "second", attributes);
    model_output(m, "second", "f32");
    trainer t;
    trainer_open_model(&t, m);
    uint64_t kept = trainer_saved(&t, &(onv_lower_options){.loss = ONV_LOSS_NONE});
    uint64_t low =
        trainer_saved(&t, &(onv_lower_options){.loss = ONV_LOSS_NONE, .amp = ONV_BFLOAT16});
    const char *const all[] = {"*"};
    uint64_t frozen = trainer_saved(
        &t, &(onv_lower_options){.loss = ONV_LOSS_NONE, .freeze = all, .n_freeze = 1});
    trainer_close(&t);
    /* x, the two outputs (that of the first is the input of the second), and the reserves. */
    uint64_t expected = (3 + 2 * reserve) * STEPS_OF_LAYER + 2 * 256;
    uint64_t weights = 2 * (2 * (uint64_t)gates * 4 * (8 + 4 + 2)) * 4;
    if (kept != expected || low != (expected - 512 + weights) / 2 + 512 || frozen != 0)
        fail_msg("%s, batch %s: %llu, %llu and %llu bytes", op, batch_first ? "first" : "second",
                 (unsigned long long)kept, (unsigned long long)low, (unsigned long long)frozen);
}

TEST(recurrent_layers_keep_a_reserve)
{
    for (int batch_first = 0; batch_first < 2; batch_first++) {
        expect_layers_keep("LSTM", 4, 5, batch_first);
        expect_layers_keep("GRU", 3, 6, batch_first);
        expect_layers_keep("RNN", 1, 1, batch_first);
    }
}

/* Of an LSTM of 4 steps of 2 samples, whose cells have 8 values: what it keeps, and what backward makes for its states. */
static uint64_t keep_of_cells(int64_t hidden, const char *call, uint64_t *temps)
{
    char w[32], r[32], h[32], attributes[32];
    onv_eager eager;
    uint64_t kept = 0;
    trainer t;
    onv_lower_options options = {.loss = ONV_LOSS_NONE};
    model *m = model_new(17);
    snprintf(w, sizeof w, "f32[1,%d,8]", (int)(4 * hidden)); /* as exporters cut it */
    snprintf(r, sizeof r, "f32[1,%d,%d]", (int)(4 * hidden), (int)hidden);
    snprintf(h, sizeof h, "f32[1,2,%d]", (int)hidden);
    snprintf(attributes, sizeof attributes, "hidden_size=%d", (int)hidden);
    model_input(m, "x", "f32[4,2,8]");
    model_input(m, "h", h);
    model_add(m, "parameters w r", "source lstm lstm",
              "class torch.nn.modules.rnn.LSTM aten.lstm.input");
    if (call != NULL) model_call(m, "aten.lstm.input", call);
    model_input(m, "c", "f32[1,2,8]");
    model_weight(m, "w", w);
    model_weight(m, "r", r);
    model_node(m, "LSTM", "lstm", "x w r - - h c", "y", attributes);
    model_output(m, "y", "f32");
    trainer_open_model(&t, m);
    trainer_lower(&t, &options, &eager);
    for (size_t i = 0; i < eager.ops.count; i++) {
        const onv_eager_op *op = &eager.ops.at[i];
        if (strcmp(op->name, "lstm") != 0) continue;
        *temps = onv_eager_backward_temps(&eager, op);
        for (uint32_t k = 0; k < op->n_saved; k++)
            if (eager.storages.at[op->saved[k]].kind == ONV_STORAGE_EXTRA)
                kept += eager.storages.at[op->saved[k]].bytes;
    }
    onv_eager_cleanup(&eager);
    trainer_close(&t);
    model_free(m);
    return kept;
}

/* The projection makes the state smaller than the cell; cuDNN keeps both. Gradients of states are made where nothing asks for
 * them, of zeros that are as large. */
TEST(cells_may_be_projected)
{
    enum { STEPS = 4, STATE = 2 * 8 * 4 };
    uint64_t temps;
    assert_int_equal(keep_of_cells(8, NULL, &temps), 5 * STEPS * STATE + 256);
    assert_int_equal(temps, 4 * STATE);
    assert_int_equal(keep_of_cells(2, NULL, &temps), 6 * STEPS * STATE + STEPS * STATE / 4 + 256);
    assert_int_equal(temps, 2 * STATE + 2 * STATE / 4);
    /* Without biases: gradients of weights in cuDNN's own order, with room for biases. */
    enum { WEIGHTS = 4 * 2 * 8 * 8 * 4, BIASES = 4 * 2 * 8 * 4 };
    keep_of_cells(8, "%x, [%h, %c], [%p_w, %p_r], False", &temps);
    assert_int_equal(temps, 4 * STATE + WEIGHTS + BIASES);
}

static uint64_t kept_with_dropout(const char *dropout, bool on_cpu)
{
    static const char *const layers[] = {"/rnn/LSTM", "/rnn/LSTM_1"};
    const int64_t joined[] = {0, 0, -1};
    model *m = model_read(17, "in x f32[6,3,8]");
    model_ints(m, "joined", 3, joined);
    model_add(m, "weight W f32[2,16,8]", "weight R f32[2,16,4]");
    model_bool(m, "training", true);
    model_node(m, "LSTM", layers[0], "x W R", "first", "hidden_size=4 direction='bidirectional'");
    model_add(m, "a = Transpose(first) /rnn/Transpose perm=[0,2,1,3]",
              "b = Reshape(a joined) /rnn/Reshape");
    if (dropout != NULL) model_node(m, "Dropout", dropout, "b - training", "h", "");
    model_node(m, "LSTM", layers[1], dropout != NULL ? "h W R" : "b W R", "y",
               "hidden_size=4 direction='bidirectional'");
    model_output(m, "y", "f32");
    return trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE, .on_cpu = on_cpu});
}

/* cuDNN drops inside, a bit for each value and direction; a module of its own keeps bytes and a tensor. */
TEST(dropout_between_layers_keeps_bits)
{
    uint64_t values = STEPS_OF_LAYER / 4, without = kept_with_dropout(NULL, false);
    assert_int_equal(without, (3 + 2 * 5) * STEPS_OF_LAYER + 256);
    assert_int_equal(kept_with_dropout("/rnn/Dropout", false), without + 2 * 32);
    assert_int_equal(kept_with_dropout("/drop/Dropout", false), without + values + STEPS_OF_LAYER);
    assert_true(kept_with_dropout("/rnn/Dropout", true) > without + STEPS_OF_LAYER);
}

/* `parameter`, [16, n], cut into its four gates and joined again as `weight`, [1, 16, n]. */
static void add_arrangement(model *m, const char *parameter, const char *weight)
{
    char name[32], inputs[128];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s.%d", weight, i);
        snprintf(inputs, sizeof inputs, "%s i%d i%d i0", parameter, i, i + 1);
        model_node(m, "Slice", name, inputs, name, "");
    }
    snprintf(name, sizeof name, "%s.joined", weight);
    snprintf(inputs, sizeof inputs, "%s.0 %s.3 %s.1 %s.2", weight, weight, weight, weight);
    model_node(m, "Concat", name, inputs, name, "axis=0");
    snprintf(inputs, sizeof inputs, "%s.joined i0", weight);
    model_node(m, "Unsqueeze", weight, inputs, weight, "");
}

/* Exporters bring the gates into ONNX's order: PyTorch keeps the parameters as they are. */
TEST(arranged_weights_are_parameters)
{
    OWNED_MODEL m = model_read(17, "in x f32[6,3,8]", "weight weight_ih f32[16,8]",
                               "weight weight_hh f32[16,4]", "weight B f32[1,32]");
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "i%d", i);
        model_ints(m, name, 1, &(int64_t){4 * i});
    }
    add_arrangement(m, "weight_ih", "W");
    add_arrangement(m, "weight_hh", "R");
    model_add(m, "y = LSTM(x W R B) lstm hidden_size=4", "out y f32");
    trainer t;
    trainer_open_model(&t, m);
    uint64_t fused = trainer_saved(&t, &(onv_lower_options){.loss = ONV_LOSS_NONE});
    uint64_t plain =
        trainer_saved(&t, &(onv_lower_options){.loss = ONV_LOSS_NONE, .as_exported = true});
    trainer_close(&t);
    uint64_t x = 6 * 3 * 8 * 4, y = 6 * 3 * 4 * 4, weights = 16 * (8 + 4) * 4;
    assert_int_equal(fused, x + (1 + 5) * y + 256);
    assert_int_equal(plain, fused + weights);
}

/* The exporter arranges weights once for all calls of a module, of which each has a reserve and keeps the module's
 * parameters. */
TEST(calls_of_a_module_share_arranged_weights)
{
    enum { Y = 6 * 3 * 4 * 4, CALLS = 4 };
    for (unsigned has_reader = 0; has_reader < 2; has_reader++) {
        model *m = model_read(17, "in x f32[6,3,4]", "weight weight_ih f32[16,4]",
                              "weight weight_hh f32[16,4]", "weight B f32[1,32]", "ints axis 1");
        for (int i = 0; i < 5; i++) {
            char name[16];
            snprintf(name, sizeof name, "i%d", i);
            model_ints(m, name, 1, &(int64_t){4 * i});
        }
        add_arrangement(m, "weight_ih", "W");
        add_arrangement(m, "weight_hh", "R");
        for (int i = 0; i < CALLS; i++) {
            char call[16], inputs[32], all[16], out[16];
            snprintf(call, sizeof call, "lstm_%d", i);
            snprintf(inputs, sizeof inputs, "h%d W R B", i);
            snprintf(all, sizeof all, "all%d", i);
            snprintf(out, sizeof out, "h%d", i + 1);
            model_source(m, "rnn", call);
            model_node(m, "LSTM", call, i == 0 ? "x W R B" : inputs, all, "hidden_size=4");
            snprintf(inputs, sizeof inputs, "%s axis", all);
            model_node(m, "Squeeze", out, inputs, out, "");
        }
        model_output(m, "h4", "f32");
        if (has_reader) {
            model_add(m, "z = Relu(W) relu", "out z f32");
        }
        uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
        if (!has_reader)
            assert_int_equal(kept, Y + CALLS * (Y + 5 * Y + 256)); /* x, results, reserves */
        else
            assert_true(kept > Y + CALLS * (Y + 5 * Y + 256)); /* something else needs W */
    }
}

/* --- Attention --------------------------------------------------------------------------------- */

/* Attention of 4 heads over 6 rows of two samples: query, key, value and result are 1,536 bytes each.
 * `scores` is what leads from "q" and "k" to "s"; "m" is a mask that is data, "c" a causal one. */
enum { HEADS_OF_SAMPLES = 2 * 4, ROWS = 6, OPERAND = 2 * 6 * 32 * 4 };

static uint64_t kept_in(const char *type, const char *const *scores, int64_t head,
                        const onv_lower_options *options)
{
    char input[16], mask[16], weight[16];
    snprintf(input, sizeof input, "%s[2,6,32]", type);
    snprintf(mask, sizeof mask, "%s[2,1,6,6]", type);
    snprintf(weight, sizeof weight, "%s[32,32]", type);
    const int64_t heads[] = {2, 6, -1, head}, square[] = {6, 6}, joined[] = {2, 6, 32};
    model *m = model_new(17);
    model_input(m, "x", input);
    model_input(m, "m", mask);
    model_ints(m, "heads", 4, heads);
    model_ints(m, "square", 2, square);
    model_ints(m, "joined", 3, joined);
    for (int i = 0; i < 3; i++) {
        char name[4][16];
        for (int k = 0; k < 4; k++) snprintf(name[k], sizeof name[k], "%c%d", "qkv"[i], k);
        char inputs[32], result[2] = {"qkv"[i], '\0'};
        model_weight(m, name[0], weight);
        snprintf(inputs, sizeof inputs, "x %s", name[0]);
        model_node(m, "MatMul", name[1], inputs, name[1], "");
        snprintf(inputs, sizeof inputs, "%s heads", name[1]);
        model_node(m, "Reshape", name[2], inputs, name[2], "");
        model_node(m, "Transpose", result, name[2], result,
                   i == 1 ? "perm=[0,2,3,1]" : "perm=[0,2,1,3]");
    }
    model_add(m, "n = Constant() number value_float=0.5", "ones = ConstantOfShape(square) ones",
              "c = Trilu(ones) causal");
    for (size_t i = 0; scores[i] != NULL; i++) {
        char op[16], inputs[16], output[8];
        assert_int_equal(sscanf(scores[i], "%15[^(](%15[^)])%7s", op, inputs, output), 3);
        model_node(m, op, output, inputs, output, "");
    }
    model_add(m, "p = Softmax(s) softmax axis=-1", "o = MatMul(p v) values",
              "r = Transpose(o) rows perm=[0,2,1,3]", "y = Reshape(r joined) join");
    model_output(m, "y", type);
    uint64_t kept = trainer_kept(m, options);
    return kept;
}

static uint64_t kept_by_attention(const char *const *scores, int64_t head,
                                  const onv_lower_options *options)
{
    return kept_in("f32", scores, head, options);
}

/* A call that runs as separate operations computes in float32 from PyTorch 2.5 on: query, key, values and
 * probabilities are kept so; x stays as it is. */
TEST(calls_in_16_bits_compute_in_float32)
{
    enum { PROBABILITIES = HEADS_OF_SAMPLES * ROWS * ROWS * 4 };
    static const char *const call[] = {"Mul(q n)a", "Mul(k n)b", "MatMul(a b)s", NULL};
    static const char *const by_hand[] = {"MatMul(q k)a", "Mul(a n)s", NULL};
    onv_lower_options options = {.loss = ONV_LOSS_NONE, .attention = ONV_ATTENTION_MATH};
    for (int i = 0; i < 2; i++) {
        const char *type = i == 0 ? "f16" : "bf16";
        options.pytorch_version = 2015;
        assert_int_equal(kept_in(type, call, 8, &options),
                         OPERAND / 2 + 3 * OPERAND + PROBABILITIES);
        assert_int_equal(kept_in(type, by_hand, 8, &options), (4 * OPERAND + PROBABILITIES) / 2);
        options.pytorch_version = 2004;
        assert_int_equal(kept_in(type, call, 8, &options), (4 * OPERAND + PROBABILITIES) / 2);
    }
}

TEST(kernels_of_attention_keep_no_scores)
{
    static const char *const by_torch[] = {"Mul(q n)a", "Mul(k n)b", "MatMul(a b)s", NULL};
    static const char *const by_hand[] = {"MatMul(q k)a", "Div(a n)s", NULL};
    static const char *const causal[] = {"MatMul(q k)a", "Mul(a n)b", "Add(b c)s", NULL};
    static const char *const masked[] = {"Mul(n q)a", "MatMul(a k)b", "Add(m b)s", NULL};
    static const char *const *const forms[] = {by_torch, by_hand, causal, masked};
    onv_lower_options options = {.loss = ONV_LOSS_NONE};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const uint64_t mask = forms[i] == masked ? 2 * ROWS * 8 * 4 : 0; /* rows in steps of 8 */
        const uint64_t efficient = HEADS_OF_SAMPLES * 32 * 4 + 2 * 8;
        const uint64_t flash = HEADS_OF_SAMPLES * ROWS * 4 + 3 * 8;
        options.amp = ONV_UNDEFINED;
        for (int kernel = ONV_ATTENTION_FLASH; kernel <= ONV_ATTENTION_EFFICIENT; kernel++) {
            options.attention = (onv_attention_kernel)kernel;
            assert_int_equal(kept_by_attention(forms[i], 8, &options),
                             5 * OPERAND + mask + efficient);
        }
        options.amp = ONV_FLOAT16; /* each product casts x anew */
        assert_int_equal(kept_by_attention(forms[i], 8, &options),
                         (7 * OPERAND + mask) / 2 + efficient);
        options.attention = ONV_ATTENTION_FLASH;
        assert_int_equal(kept_by_attention(forms[i], 8, &options),
                         (7 * OPERAND + mask) / 2 + (mask > 0 ? efficient : flash));
    }
}

/* Heads of 2 values have no kernel, those of 4 in 32 bits alone; an export as it is has none either. */
TEST(attention_without_a_kernel_stays_apart)
{
    static const char *const plain[] = {"MatMul(q k)a", "Mul(a n)s", NULL};
    onv_lower_options math = {.loss = ONV_LOSS_NONE}, flash = math;
    flash.attention = ONV_ATTENTION_FLASH;
    assert_int_equal(kept_by_attention(plain, 2, &flash), kept_by_attention(plain, 2, &math));
    assert_int_equal(kept_by_attention(plain, 4, &flash),
                     5 * OPERAND + 2 * HEADS_OF_SAMPLES * 32 * 4 + 2 * 8);
    math.amp = flash.amp = ONV_FLOAT16;
    assert_int_equal(kept_by_attention(plain, 4, &flash), kept_by_attention(plain, 4, &math));
    math.amp = flash.amp = ONV_UNDEFINED;
    math.as_exported = flash.as_exported = true;
    assert_int_equal(kept_by_attention(plain, 8, &flash), kept_by_attention(plain, 8, &math));
}

/* What PyTorch 2.15 takes for calls, told by what stays: FlashAttention has 24 bytes of states, cuDNN's
 * kernel 16, the third one rows that are rounded up to 32. */
TEST(the_dispatcher_chooses_by_device_mask_and_type)
{
    enum {
        OPERANDS = 7 * OPERAND / 2,
        MASK = 2 * ROWS * ROWS * 2,
        PADDED = 2 * ROWS * 8 * 2,
        SUMS = HEADS_OF_SAMPLES * 4
    };
    static const char *const call[] = {"Mul(q n)a", "Mul(k n)b", "MatMul(a b)s", NULL};
    static const char *const masked[] = {"Mul(q n)a", "Mul(k n)b", "MatMul(a b)e", "Add(e m)s",
                                         NULL};
    const struct {
        uint32_t device, pytorch;
        double dropout;
        bool is_masked;
        uint64_t kept;
    } cases[] = {
        {90, 2015, 0, false, OPERANDS + ROWS * SUMS + 16},
        {90, 2015, 0, true, OPERANDS + MASK + ROWS * SUMS + 16},
        {100, 2015, 0, false, OPERANDS + ROWS * SUMS + 16},
        {90, 2015, 0.1, false, OPERANDS + ROWS * SUMS + 24},
        /* With dropout the memory-efficient kernel has its seeds on the host. */
        {90, 2015, 0.1, true, OPERANDS + PADDED + 32 * SUMS},
        {80, 2015, 0, false, OPERANDS + ROWS * SUMS + 24},
        {86, 2015, 0, true, OPERANDS + PADDED + 32 * SUMS + 16},
        {90, 2014, 0, false, OPERANDS + ROWS * SUMS + 16},
        {90, 2013, 0, false, OPERANDS + ROWS * SUMS + 24},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_lower_options options = {.loss = ONV_LOSS_NONE, .attention = ONV_ATTENTION_AUTO};
        options.amp = ONV_FLOAT16;
        options.attention_dropout = cases[i].dropout;
        options.cuda = onv_cuda_library_defaults();
        options.cuda.compute_capability = cases[i].device;
        options.cuda.pytorch = options.pytorch_version = cases[i].pytorch;
        uint64_t kept = kept_by_attention(cases[i].is_masked ? masked : call, 8, &options);
        if (kept != cases[i].kept)
            fail_msg("case %zu keeps %llu bytes, not %llu", i, (unsigned long long)kept,
                     (unsigned long long)cases[i].kept);
    }
}

/* Kernels want the values of a head side by side: where the query has them apart, the call runs as separate operations. */
TEST(heads_whose_values_lie_apart_have_no_kernel)
{
    static const struct {
        bool is_turned, is_guarded;
        const char *operations;
    } cases[] = {{false, true, " permute permute t efficient_attention"},
                 {true, false,
                  " permute permute t mul t mul expand view expand view bmm view softmax expand "
                  "view expand view "
                  "bmm view release"},
                 {true, true,
                  " permute permute t mul t mul expand view expand view bmm view softmax expand "
                  "view expand view "
                  "bmm view release"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool is_guarded = cases[i].is_guarded;
        static const char *const ops[][3] = {
            {"Transpose", "key", "k"},       {"Mul", "q root", "q1"},
            {"Mul", "k root", "k1"},         {"MatMul", "q1 k1", "s"},
            {"Softmax", "s", "p"},           {"IsNaN", "p", "bad"},
            {"Where", "bad zero p", "safe"}, {"MatMul", "p v", "o"},
            {"MatMul", "safe v", "guarded"}};
        OWNED_PASS p;
        onv_lower_options how = {.attention = ONV_ATTENTION_AUTO};
        model *m = model_read(17, "in x f32[2,2,8,8]", "in key f32[2,2,6,8]", "in v f32[2,2,6,8]",
                              "constant root f32[]", "constant zero f32[]");
        model_node(m, "Transpose", "", "x", "q",
                   cases[i].is_turned ? "perm=[0,1,3,2]" : "perm=[1,0,2,3]");
        for (size_t n = 0; n < sizeof ops / sizeof ops[0]; n++) {
            if (n >= 5 && (n == 7) == is_guarded) continue;
            if (n >= 5 && n != 7 && !is_guarded) continue;
            model_add(m, "source at sdpa", "class Net aten.scaled_dot_product_attention.default");
            model_node(m, ops[n][0], "", ops[n][1], ops[n][2], n == 0 ? "perm=[0,1,3,2]" : "");
        }
        model_output(m, is_guarded ? "guarded" : "o", "f32");
        pass_run(&p, m, &how);
        char names[256] = "";
        for (uint32_t k = 0; k < p.t.steps.count; k++)
            snprintf(names + strlen(names), sizeof names - strlen(names), " %s",
                     p.t.steps.at[k].label);
        if (strcmp(names, cases[i].operations) != 0) fail_msg("case %zu:%s", i, names);
    }
}
