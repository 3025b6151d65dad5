/* Questions of what would be: weights in fewer bits, the key-value cache, single changes of the graph. Figures
 * are counted by hand. */
#include "api/analysis.h"
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

static void refuses(model *m, const onv_options *options, const char *part)
{
    OWNED_ANALYSIS a = NULL;
    onv_error error = {0};
    assert_int_equal(model_try(m, options, &a, &error), ONV_ERR_USAGE);
    if (strstr(error.message, part) == NULL) fail_msg("'%s' has no '%s'", error.message, part);
    model_free(m);
}

/* --- Weights ----------------------------------------------------------------------------------- */

static const onv_runtime_result *runtime_of(const onv_analysis *a, const char *name)
{
    for (size_t i = 0; i < a->n_runtimes; i++)
        if (strcmp(a->runtimes[i].runtime->name, name) == 0) return &a->runtimes[i];
    fail_msg("no runtime '%s'", name);
    return NULL;
}

/* Three layers: MatMul, Gemm with a bias, MatMul with a transposed weight; a table, and one that is a layer,
 * too; a convolution has no part in it. */
static model *layers(void)
{
    model *m = model_read(
        17, "in ids i64[B,6]", "weight table f32[50,128]", "weight w1 f32[128,256]",
        "weight w2 f32[192,256]", "weight b2 f32[192]", "weight w3 f32[128,192]",
        "ints flat -1 256", "e = Gather(table ids) look", "h1 = MatMul(e w1) first",
        "h2 = Reshape(h1 flat) flatten", "h3 = Gemm(h2 w2 b2) second transB=1",
        "w3t = Transpose(w3) turn perm=[1,0]", "h4 = MatMul(h3 w3t) third",
        "tt = Transpose(table) turn_table perm=[1,0]", "y = MatMul(h4 tt) head", "out y f32");
    return m;
}

/* Elements and outputs of the three. */
static const uint64_t matrices[3][2] = {{128 * 256, 256}, {192 * 256, 192}, {128 * 192, 128}};

static uint64_t expected(const char *format)
{
    uint64_t sum = 0;
    for (int i = 0; i < 3; i++) {
        uint64_t elems = matrices[i][0], rows = matrices[i][1], scales = elems / 64;
        if (strcmp(format, "int8") == 0) sum += elems + 4 * rows;
        if (strcmp(format, "int4") == 0) sum += elems / 2 + 4 * scales + 64;
        if (strcmp(format, "nf4") == 0)
            sum += elems / 2 + scales + 64 + 4 * ((scales + 255) / 256) + 1024 + 4;
    }
    return sum;
}

TEST(weights_of_products_have_fewer_bits)
{
    static const char *const formats[] = {"int8", "int4", "nf4"};
    uint64_t left = 4 * (50 * 128 + 192) + 2 * 8; /* the table, the bias, the shape */
    for (size_t i = 0; i < 3; i++) {
        onv_options options = onv_options_default();
        options.batch = 2;
        options.weights = formats[i];
        OWNED_MODEL m = layers();
        OWNED_ANALYSIS a = model_analyse(m, &options);
        json_t *root = report_json(a), *q = json_object_get(root, "quantization");
        uint64_t bytes = expected(formats[i]);
        assert_int_equal(json_number(q, "matrices"), 3);
        assert_int_equal(json_number(q, "bytes"), bytes);
        assert_int_equal(json_number(q, "bytes_before"), 4 * (128 * 256 + 192 * 256 + 128 * 192));
        assert_int_equal(json_number(q, "left_bytes"), left);
        assert_int_equal(json_number(q, "left_table_bytes"), 4 * 50 * 128);
        assert_int_equal(json_number(json_object_get(root, "parameters"), "bytes"), bytes + left);
        assert_int_equal(runtime_of(a, "ideal")->weight_bytes, bytes + left);
        OWNED_TEXT text = report_text(a, ONV_FORMAT_MARKDOWN, NULL);
        expect_contains(text, "3 matrices of products");
        json_decref(root);
    }
}

/* The turned weight is not made: nothing but the weight itself is there for it. */
TEST(a_transposed_weight_is_read_as_it_is)
{
    onv_options options = onv_options_default();
    options.batch = 2;
    options.weights = "int4";
    OWNED_MODEL m = layers();
    OWNED_ANALYSIS a = model_analyse(m, &options);
    onv_tensor_info info;
    bool found = false;
    for (size_t i = 0; i < onv_analysis_tensor_count(a); i++) {
        assert_true(onv_analysis_tensor(a, i, &info));
        if (strcmp(info.name, "w3t") == 0) {
            found = true;
            assert_int_equal(info.bytes, 0);
        }
    }
    assert_true(found);
}

/* ONNX Runtime counts what its own quantizer would have written. */
static model *quantized_by_hand(bool nf4)
{
    model *m = model_read(17, "import com.microsoft 1", "in x f32[B,40,128]");
    if (nf4) {
        model_add(m, "weight q u8[16384]", "weight s f32[512]",
                  "y = com.microsoft::MatMulBnb4(x q s) p K=128 N=256 block_size=64 quant_type=1");
    } else {
        model_add(m, "weight q u8[256,1,64]", "weight s f32[256,1]", "weight z u8[256,1]",
                  "y = com.microsoft::MatMulNBits(x q s z) p K=128 N=256 block_size=128 bits=4");
    }
    model_output(m, "y", "f32");
    return m;
}

static model *one_product(void)
{
    model *m = model_read(17, "import com.microsoft 1", "in x f32[B,40,128]",
                          "weight w f32[128,256]", "y = MatMul(x w) p", "out y f32");
    return m;
}

TEST(onnx_runtime_counts_its_own_operators)
{
    for (int nf4 = 0; nf4 < 2; nf4++) {
        onv_options options = onv_options_default();
        options.batch = 3;
        options.runtimes = "ort";
        model *by_hand = quantized_by_hand(nf4 == 1), *m = one_product();
        OWNED_ANALYSIS a = model_analyse(by_hand, &options);
        options.weights = nf4 == 1 ? "nf4" : "int4";
        OWNED_ANALYSIS b = model_analyse(m, &options);
        const onv_runtime_result *x = runtime_of(a, "ort"), *y = runtime_of(b, "ort");
        assert_int_equal(x->weight_bytes, y->weight_bytes);
        assert_int_equal(x->held_bytes, y->held_bytes);
        assert_int_equal(x->weight_bytes, nf4 == 1 ? 16384 + 2048 : 16384 + 1024 + 256);
        model_free(by_hand);
        model_free(m);
    }
}

TEST(what_cannot_be_quantized_is_refused)
{
    onv_options options = onv_options_default();
    options.batch = 1;
    options.weights = "int4";
    model *m = model_read(17, "in x f32[B,3,8,8]", "weight w f32[4,3,3,3]", "y = Conv(x w) conv",
                          "out y f32");
    refuses(m, &options, "no weight can be quantized to int4");
    options.weights = "int2";
    refuses(layers(), &options, "'int2'");
    options.weights = "int4";
    options.onnx_out = true;
    refuses(layers(), &options, "--weight-format");
}

/* --- The cache --------------------------------------------------------------------------------- */

/* One layer with heads of 4 x 8; names as asked for, `dims` of the past and the present. */
static model *decoder(const char *past, const char *present, const char *past_type)
{
    model *m = model_read(17, "in k f32[B,4,s,8]");
    model_input(m, past, past_type);
    char inputs[80];
    snprintf(inputs, sizeof inputs, "%s k", past);
    model_node(m, "Concat", "grow", inputs, present, "axis=2");
    model_node(m, "Exp", "use", present, "y", "");
    model_output(m, "y", "f32");
    model_output(m, present, "f32");
    return m;
}

static json_t *cache_of(model *m, const char *mode, uint64_t budget, onv_summary *summary)
{
    static const onv_dim_binding dims[] = {{"s", 1}, {"p", 99}};
    onv_options options = onv_options_default();
    options.batch = 2;
    options.dims = dims;
    options.n_dims = 2;
    options.kv_cache = mode;
    options.budget = budget;
    options.runtimes = "ideal";
    onv_analysis *a = model_analyse(m, &options);
    json_t *root = report_json(a), *cache = json_incref(json_object_get(root, "kv_cache"));
    onv_analysis_summary(a, summary);
    json_decref(root);
    onv_analysis_destroy(a);
    model_free(m);
    return cache;
}

/* 2 x 4 x 8 floats a token. */
enum { TOKEN = 256 };

TEST(copies_and_one_buffer)
{
    static const struct {
        const char *past, *present;
    } names[] = {{"past_key_values.0.key", "present.0.key"},
                 {"past_key_0", "present_key_0"},
                 {"left", "right"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        onv_summary s;
        json_t *c =
            cache_of(decoder(names[i].past, names[i].present, "f32[B,4,p,8]"), "copies", 0, &s);
        assert_int_equal(json_number(c, "token_bytes"), TOKEN);
        assert_int_equal(json_number(c, "past_tokens"), 99);
        assert_int_equal(json_number(c, "tokens"), 100);
        assert_int_equal(json_number(c, "bytes"), 199 * TOKEN);
        assert_int_equal(json_number(c, "layers"), 1);
        /* At the Exp: both of them, and what it makes. */
        assert_int_equal(s.peak_bytes, (99 + 100 + 100) * TOKEN);
        json_decref(c);
        c = cache_of(decoder(names[i].past, names[i].present, "f32[B,4,p,8]"), "shared", 0, &s);
        assert_int_equal(json_number(c, "bytes"), 100 * TOKEN);
        assert_int_equal(s.peak_bytes, (100 + 100) * TOKEN);
        json_decref(c);
    }
}

TEST(the_longest_context)
{
    onv_summary s;
    /* Past p, present and result p + 1 tokens each, and the input of one token where that is more. */
    json_t *c = cache_of(decoder("left", "right", "f32[B,4,p,8]"), "copies", 3000 * TOKEN, &s);
    assert_int_equal(json_number(c, "longest_context"), 1000);
    json_decref(c);
    c = cache_of(decoder("left", "right", "f32[B,4,p,8]"), "shared", 3000 * TOKEN, &s);
    assert_int_equal(json_number(c, "longest_context"), 1500);
    json_decref(c);
}

TEST(attention_in_place_and_a_cache_that_does_not_grow)
{
    model *m = model_read(
        17, "import com.microsoft 1", "in q f16[B,s,64]", "in k f16[B,s,32]", "in v f16[B,s,32]",
        "in past_key_values.0.key f16[B,2,p,16]", "in past_key_values.0.value f16[B,2,p,16]",
        "in past_key_values.0.encoder.key f16[B,2,30,16]", "in lengths i32[B]", "in total i32[]",
        "y present.0.key present.0.value = com.microsoft::GroupQueryAttention(q k v "
        "past_key_values.0.key past_key_values.0.value lengths total) gqa num_heads=4 "
        "kv_num_heads=2",
        "z = Exp(past_key_values.0.encoder.key) other", "out y f16", "out z f16",
        "out present.0.key f16[B,2,p,16]", "out present.0.value f16[B,2,p,16]");
    onv_summary s;
    OWNED_JSON c = cache_of(m, "shared", 0, &s);
    json_t *pairs = json_object_get(c, "pairs");
    assert_int_equal(json_array_size(pairs), 3);
    assert_int_equal(json_number(c, "layers"), 1);
    assert_int_equal(json_number(c, "tokens"), 99); /* the buffer, however much of it is in use */
    assert_int_equal(json_number(c, "bytes"), 2 * 2 * 99 * 2 * 16 * 2 + 2 * 2 * 30 * 16 * 2);
    assert_int_equal(json_number(c, "token_bytes"), 2 * 2 * 2 * 16 * 2);
    assert_int_equal(json_number(c, "fixed_bytes"), 2 * 2 * 30 * 16 * 2);
    assert_true(json_is_true(json_object_get(json_array_get(pairs, 0), "in_place")));
}

/* Orders of initializers are tried with the buffers that are shared, so that the range holds the figure. */
TEST(one_buffer_is_in_the_range_of_orders)
{
    static const onv_dim_binding dims[] = {{"sequence", 1}, {"past", 1023}, {"total", 1024}};
    onv_options options = onv_options_default();
    onv_analysis *a;
    options.batch = 64;
    options.dims = dims;
    options.n_dims = 3;
    options.kv_cache = "shared";
    options.runtimes = "ort";
    assert_int_equal(
        onv_analysis_new(ONV_SOURCE_DIR "/samples/llama-attention.onnx", &options, &a, NULL),
        ONV_OK);
    assert_true(a->runtimes[0].low_bytes <= a->runtimes[0].held_bytes);
    assert_true(a->runtimes[0].total_bytes.low <= a->runtimes[0].total_bytes.high);
    onv_analysis_destroy(a);
}

TEST(without_a_cache_there_is_nothing_to_say)
{
    onv_options options = onv_options_default();
    options.batch = 2;
    options.kv_cache = "copies";
    refuses(layers(), &options, "no key-value cache was found");
    options.kv_cache = "three";
    refuses(layers(), &options, "'three'");
}

/* --- Savings ----------------------------------------------------------------------------------- */

static json_t *savings_of(model *m, int64_t batch)
{
    onv_options options = onv_options_default();
    options.batch = batch;
    options.savings = true;
    onv_analysis *a = model_analyse(m, &options);
    json_t *root = report_json(a), *list = json_incref(json_object_get(root, "savings"));
    json_decref(root);
    onv_analysis_destroy(a);
    model_free(m);
    return list;
}

static json_t *saving(json_t *list, const char *kind, const char *tensor, bool everywhere)
{
    size_t i;
    json_t *row;
    json_array_foreach(list, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "tensor"));
        bool all = json_is_true(json_object_get(row, "everywhere"));
        if (strcmp(json_string_value(json_object_get(row, "kind")), kind) == 0 &&
            (tensor == NULL || (name != NULL && strcmp(name, tensor) == 0)) && all == everywhere)
            return row;
    }
    return NULL;
}

/* The result of `make`, of one part, waits over a Concat of 2 parts and what that reads. A part is 100 floats
 * for each sample. */
static model *waiting(const char *first, const char *last)
{
    model *m = model_read(17, "in x f32[B,100]", "in z f32[B,1]", "n = Sub(x z) narrow",
                          "s = ReduceMax(n) small axes=[1]");
    model_node(m, first, "make", "z wide", "a", "");
    model_node(m, "Sin", "before", last, "b", "");
    model_add(m, "c = Concat(b b b) peak axis=1", "d = ReduceMax(c) after axes=[1]",
              "y = Add(a d) join", "out y f32", "ints wide 1 100");
    return m;
}

/* Each is analysed: 100 floats are 400 bytes. At the Concat there are a, b and c: 1 + 1 + 3 parts, and the
 * 4 bytes of s and z. */
TEST(changes_of_one_node)
{
    enum { PART = 400 };
    OWNED_JSON list = savings_of(waiting("Expand", "n"), 1);
    static const struct {
        const char *kind, *tensor;
        json_int_t saved;
    } rows[] = {
        {"16-bit", "a", PART / 2},
        {"16-bit", "c", 3 * PART / 2},
        {"recompute", "a", PART - 4}, /* z waits instead */
        {"later", "a", PART - 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *row = saving(list, rows[i].kind, rows[i].tensor, false);
        if (row == NULL) {
            char *all = json_dumps(list, 0);
            fail_msg("no %s of %s: %s", rows[i].kind, rows[i].tensor, all);
        }
        assert_int_equal(json_number(row, "saved_bytes"), rows[i].saved);
    }
}

/* The reader of a wide value waits behind the peak, though it could run. */
TEST(a_reader_may_run_earlier)
{
    model *m = model_read(17, "in x f32[B,100]", "a = Exp(x) make", "c = Concat(x x x) peak axis=1",
                          "d = ReduceMax(c) after axes=[1]", "e = ReduceMax(a) late axes=[1]",
                          "y = Add(e d) join", "out y f32");
    OWNED_JSON list = savings_of(m, 1);
    json_t *row = saving(list, "earlier", "a", false);
    assert_non_null(row);
    assert_string_equal(json_string_value(json_object_get(row, "node")), "late");
    assert_int_equal(json_number(row, "peak_bytes"), 1600 + 4); /* x and c, and the 4 bytes of e */
}

/* One of two layers alike in place helps nothing, both do. */
TEST(what_helps_only_everywhere)
{
    model *m =
        model_read(17, "in x f32[B,100]", "a = Concat(x x) wide1 axis=1", "b = Sigmoid(a) act1",
                   "c = ReduceMax(b) narrow1 axes=[1]", "d = Concat(x x) wide2 axis=1",
                   "e = Sigmoid(d) act2", "f = ReduceMax(e) narrow2 axes=[1]", "g = Add(f x) join",
                   "y = Add(g c) join2", "out y f32");
    OWNED_JSON list = savings_of(m, 1);
    assert_null(saving(list, "in-place", "b", false)); /* the second layer is as large */
    json_t *row = saving(list, "in-place", NULL, true);
    assert_non_null(row);
    /* At narrow2: x, c, d and e in one, f; c and f are 4 bytes. */
    assert_int_equal(json_number(row, "peak_bytes"), 400 + 4 + 800 + 4);
}

TEST(the_batch_in_parts)
{
    model *m = model_read(17, "in x f32[B,100]", "a = Concat(x x) wide axis=1",
                          "b = Sigmoid(a) act", "y = ReduceMax(b) narrow axes=[1]", "out y f32");
    OWNED_JSON list = savings_of(m, 8);
    json_t *row = json_array_get(list, 0);
    assert_string_equal(json_string_value(json_object_get(row, "kind")), "split-batch");
    assert_int_equal(json_number(row, "parts"), 8);
    assert_int_equal(json_number(row, "batch"), 1);
    /* One sample: a and b, 1600 bytes; the inputs of seven others. */
    assert_int_equal(json_number(row, "peak_bytes"), 1600 + 7 * 400);
    assert_int_equal(json_number(row, "more_nodes"), 7 * 3);
    assert_int_equal(json_number(row, "more_macs"), 0);
}
