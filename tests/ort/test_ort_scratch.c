/* What kernels of ONNX Runtime ask of the arena next to their outputs, and what recurrent ones keep. */
#include "ort/scratch.h"
#include "support/flow.h"
#include "support/test.h"

/* --- Scratch ----------------------------------------------------------------------------------- */

/* Requests of one operator to the arena beside its outputs, in their order. Measured, CUDA build without a GPU. */
TEST(kernels_take_what_was_measured)
{
    static const struct {
        const char *x, *other, *node;
        uint64_t bytes[ONV_ORT_MOST_SCRATCH + 1];
    } cases[] = {
        {"in x f32[8,1000]", NULL, "y = ArgMax(x) axis=-1", {0}},
        {"in x f32[8,64,32,32]", NULL, "y = ArgMax(x) axis=1", {4194304, 32768, 32768}},
        {"in x f16[64,4096]", NULL, "y = ArgMin(x) axis=0", {1048576, 2097152, 16384, 16384}},
        {"in x f32[8,64,32,32]", "ints a 1", "y = ReduceMax(x a)", {2097152}},
        {"in x i32[8,64,32,32]", "ints a 1", "y = ReduceMax(x a)", {4194304, 4194304, 65536}},
        {"in x i32[8,64,32,32]", "ints a 1", "y = ReduceSum(x a)", {0}},
        {"in x f16[8,64,32,32]", "ints a -1", "y = ReduceSumSquare(x a)", {1048576, 131087}},
        {"in x f16[8,64,32,32]", "ints a 1", "y = ReduceSumSquare(x a)", {2097152, 1048576}},
        {"in x f16[8,64,32,32]", "ints a 0", "y = ReduceSumSquare(x a)", {1048576}},
        {"in x f16[8,64,32,32]", "ints a 1", "y = ReduceLogSumExp(x a)", {2097152, 1048576, 16384}},
        {"in x f32[1000000]", NULL, "y = NonZero(x)", {15628, 1023}},
        {"in x f32[64,100]", "weight c bool[64]", "y = Compress(x c) axis=0", {256, 1023}},
        {"in x f32[64,10,100]", "weight i i64[64,5,1]", "y = GatherND(x i) batch_dims=1", {2560}},
        {"in x f32[4,1,16,32]", "weight w f32[3,32,64]", "y = MatMul(x w)", {96, 96, 96}},
        {"in x f32[4,16,32]", "weight w f32[32]", "y = MatMul(x w)", {512, 512, 512}},
        {"in x f32[16,32]", "weight w f32[8,32,64]", "y = MatMul(x w)", {64, 64, 64}},
        {"in x f32[8,16,32]", "weight w f32[8,32,64]", "y = MatMul(x w)", {0}},
        {"in x f32[8,1,16,32]", "weight w f32[1,32,64]", "y = MatMul(x w)", {0}},
        {"in x f32[2,16,32,32]", "ints s 2 16 64 64", "y = Resize(x - - s)", {1200}},
        {"in x f32[2,16,32,32]", "ints s 2 16 20 20", "y = Resize(x - - s) mode='linear'", {480}},
        {"in x f32[2,16,32]", "ints s 2 16 64", "y = Resize(x - - s) mode='linear'", {984}},
        {"in x f32[2,16,32,32]", "ints s 2 16 20 20", "y = Resize(x - - s) mode='cubic'", {960}},
        {"in x f32[2,16,32,32]", "ints s 2 16 32 32", "y = Resize(x - - s)", {0}},
        {"in x f32[2,16,32,32]",
         "ints s 2 16 20 16",
         "y = Resize(x - - s) mode='linear' antialias=1",
         {576, 288, 720}},
        {"in x f32[2,16,32,32]",
         "ints s 2 16 8 64",
         "y = Resize(x - - s) mode='cubic' antialias=1",
         {1152, 576, 1824}},
        {"in x f32[4,32,16,16]",
         "weight s f32[32]",
         "y = InstanceNormalization(x s s)",
         {512, 512, 512, 512}},
        {"in x f16[1,32,16,16]",
         "weight s f16[32]",
         "y = InstanceNormalization(x s s)",
         {128, 128}},
        {"in x f16[4,32,16,16]",
         "weight s f16[32]",
         "y = BatchNormalization(x s s s s)",
         {128, 128, 128, 128}},
        {"in x f32[8,64,32]",
         "weight w f32[8,32,48]",
         "y = Einsum(x w) equation='bij,bjk->bik'",
         {49152, 98304}},
        {"in x f32[2,64,4,32]",
         "weight w f32[2,64,4,32]",
         "y = Einsum(x w) equation='bihd,bjhd->bhij'",
         {65536, 65536, 65536, 131072}},
        {"in x f32[2,4,64,64]",
         "weight w f32[2,64,4,32]",
         "y = Einsum(x w) equation='...hij,...jhd->...ihd'",
         {65536, 65536, 65536, 65536}},
        {"in x f32[64,128]", NULL, "y = Einsum(x) equation='ij->ji'", {32768}},
        {"in x f32[64,128]", NULL, "y = Einsum(x) equation='ij->i'", {256, 527}},
        {"in x f32[64]", "weight w f32[128]", "y = Einsum(x w) equation='i,j'", {512, 32768}},
        {"in x f16[2,16,8,8]",
         "weight w f16[16,32]",
         "y = Einsum(x w) equation='bchw,cd->bdhw'",
         {4096, 1024, 8192, 8192}},
        {"in x f16[128,2048]",
         "weight w u8[8192,64,16];weight s f16[524288]",
         "y = com.microsoft::MatMulNBits(x w s) K=2048 N=8192 bits=4 block_size=32",
         {33554432}},
        {"in x f16[128,2048]",
         "weight w u8[128256,64,16];weight s f16[8208384]",
         "y = com.microsoft::MatMulNBits(x w s) K=2048 N=128256 bits=4 block_size=32",
         {134217728}},
        {"in x bf16[64,4096]", "ints a 1", "y = ReduceMean(x a)", {1295}},
        {"in x bf16[8,64,512]", "ints a 1", "y = ReduceSum(x a)", {1048576, 1048576, 16384}},
        {"in x f32[3,128000]", "ints k 16", "y i = TopK(x k)", {3072}},
        {"in x f32[2,5000]", "ints k 33", "y i = TopK(x k) largest=0", {0}},
        {"in x f32[5000,4]", "ints k 5", "y i = TopK(x k) axis=0", {0}},
        {"in x f32[2,50000]",
         "ints k 20000",
         "y i = TopK(x k)",
         {200000, 200000, 400000, 400000, 619263}},
        {"in x f16[1,2000000]",
         "ints k 20000",
         "y i = TopK(x k)",
         {4000000, 4000000, 16000000, 16000000, 20369151}},
        {"in x i64[2,50000]",
         "ints k 20000",
         "y i = TopK(x k)",
         {400000, 400000, 400000, 400000, 828415}},
        {"in x f32[2,50000]", "ints k 20000", "y i = TopK(x k) sorted=0", {0}},
        {"in x f32[8,16,16]", NULL, "y = com.microsoft::Inverse(x)", {32, 512, 8192, 64, 64}},
        {"in x f16[8,16,16]", NULL, "y = com.microsoft::Inverse(x)", {32, 512, 8192, 64, 64, 8192}},
        {"in x f16[2,128,1024]",
         "in p f16[2,4,0,64];in n i32[2];in t i32[];weight c f16[512,32]",
         "y k v = com.microsoft::GroupQueryAttention(x - - p p n t c c) num_heads=8 "
         "kv_num_heads=4 do_rotary=1",
         {24, 262144, 256}},
        {"in x f16[1,128,512]",
         "in q f16[1,128,256];in p f16[1,4,0,64];in n i32[1];in t i32[]",
         "y k v = com.microsoft::GroupQueryAttention(x q q p p n t) num_heads=8 kv_num_heads=4",
         {12, 256}},
        {"in x f16[2,128,768]",
         NULL,
         "y = com.microsoft::MultiHeadAttention(x x x) num_heads=12",
         {256}},
        {"in x f16[2,128,768]",
         "in m i32[2,128]",
         "y = com.microsoft::MultiHeadAttention(x x x - m) num_heads=12",
         {2752512}},
        {"in x f16[2,128,768]",
         "weight b f16[2304]",
         "y = com.microsoft::MultiHeadAttention(x x x b) num_heads=12",
         {1179648, 256}},
        {"in x f32[1,1024,512]",
         "in q f32[1,77,512]",
         "y = com.microsoft::MultiHeadAttention(x q q) num_heads=8",
         {0}},
        {"in x f32[1,512,512]",
         "weight b f32[1536]",
         "y = com.microsoft::MultiHeadAttention(x x x b) num_heads=8",
         {3145728}},
        {"in x f32[1,128,640]",
         NULL,
         "y = com.microsoft::MultiHeadAttention(x x x) num_heads=8",
         {2031616}},
        {"in x f16[2,128,768]",
         "weight w f16[768,2304];weight b f16[2304]",
         "y = com.microsoft::Attention(x w b) num_heads=12",
         {1179648, 1179648, 256}},
        {"in x f16[8,128,384]",
         "weight w f16[384,1152];weight b f16[1152];in m i32[8]",
         "y = com.microsoft::Attention(x w b m) num_heads=6",
         {2359296, 2359296, 32, 256}},
        {"in x f32[1,512,512]",
         "weight w f32[512,1536];weight b f32[1536];in m i32[1,512]",
         "y = com.microsoft::Attention(x w b m) num_heads=8",
         {3145728, 19922944}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_MODEL m = model_read(18, cases[i].x);
        char others[128] = "", type[8] = "";
        if (cases[i].other != NULL) snprintf(others, sizeof others, "%s", cases[i].other);
        for (char *rest = others, *line; (line = strtok_r(rest, ";", &rest)) != NULL;)
            model_add(m, line);
        model_import(m, "com.microsoft", 1);
        sscanf(cases[i].x, "in x %7[^[]", type);
        bool gives_indices =
            strstr(cases[i].node, "Arg") != NULL || strstr(cases[i].node, "NonZero") != NULL;
        model_add(m, cases[i].node);
        model_output(m, "y", gives_indices ? "i64" : type);
        flow f;
        onv_ort_scratch scratch = {0};
        flow_open_model(&f, m, "ort");
        onv_ort_session session = {.settings = &onv_ort_settings_default,
                                   .cuda = {.compute_capability = 90}};
        bool *is_host = calloc(f.model.values.count, sizeof *is_host);
        onv_ort_find_scratch(&f.model, onv_model_node(&f.model, f.live.timeline.steps.at[0].node),
                             is_host, &session, &scratch);
        for (uint32_t k = 0; k <= scratch.count; k++) {
            uint64_t bytes = k < scratch.count ? scratch.rows[k].bytes : 0;
            if (bytes != cases[i].bytes[k])
                fail_msg("%s, %s: request %u has %llu bytes", cases[i].x, cases[i].node, k,
                         (unsigned long long)bytes);
        }
        free(is_host);
        flow_close(&f);
    }
}

/* How many boxes are left to compare, data tells: between none and all of them. */
TEST(suppression_compares_what_is_left)
{
    static const uint64_t bytes[] = {277503, 134400, 134400, 134400, 134400, 537600, 141120000};
    OWNED_MODEL m = model_read(18, "in b f32[1,33600,4]", "in s f32[1,2,33600]",
                               "o = NonMaxSuppression(b s)", "out o i64[boxes,3]");
    OWNED_FLOW f;
    onv_ort_scratch scratch = {0};
    onv_ort_session session = {.settings = &onv_ort_settings_default};
    flow_open_model(&f, m, "ort");
    bool *is_host = calloc(f.model.values.count, sizeof *is_host);
    onv_ort_find_scratch(&f.model, onv_model_node(&f.model, f.live.timeline.steps.at[0].node),
                         is_host, &session, &scratch);
    assert_int_equal(scratch.count, 7);
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(scratch.rows[i].bytes, bytes[i]);
        assert_true(scratch.rows[i].is_early);
        assert_int_equal(scratch.rows[i].is_uncertain, i == 6);
    }
    assert_int_equal(scratch.rows[6].least_bytes, 0);
    assert_int_equal(scratch.rows[6].most_bytes, bytes[6]);
    free(is_host);
}

/* --- Recurrent layers -------------------------------------------------------------------------- */

/* Measured over a substitute for the CUDA driver, as an H100: workspace, by cell and directions. */
TEST(recurrent_layers_take_what_was_measured)
{
    static const struct {
        const char *op;
        int64_t gates, directions;
        uint64_t workspace, packed;
    } cases[] = {
        {"LSTM", 4, 1, 12927296, 1581056},
        {"GRU", 3, 1, 11968832, 1185792},
        {"GRU", 3, 2, 25805120, 2371584},
        {"RNN", 1, 1, 10117440, 395264},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char w[48], r[48], b[48], attributes[96];
        long long g = cases[i].gates * 256, d = cases[i].directions;
        snprintf(w, sizeof w, "f32[%lld,%lld,128]", d, g);
        snprintf(r, sizeof r, "f32[%lld,%lld,256]", d, g);
        snprintf(b, sizeof b, "f32[%lld,%lld]", d, 2 * g);
        snprintf(attributes, sizeof attributes, "hidden_size=256 direction=%s",
                 d == 2 ? "'bidirectional'" : "'forward'");
        OWNED_MODEL m = model_read(17, "in x f32[64,8,128]");
        model_weight(m, "w", w);
        model_weight(m, "r", r);
        model_weight(m, "b", b);
        model_node(m, cases[i].op, "rnn", "x w r b", "y", attributes);
        model_output(m, "y", "f32");
        OWNED_FLOW f;
        flow_open_model(&f, m, "ort");
        onv_ort_session session = {.settings = &onv_ort_settings_default,
                                   .cuda = onv_cuda_library_defaults()};
        const onv_node *node = onv_model_node(&f.model, f.live.timeline.steps.at[0].node);
        bool *is_host = calloc(f.model.values.count, sizeof *is_host);
        onv_ort_scratch scratch = {0};
        uint64_t kept[ONV_ORT_MOST_KEPT];
        onv_ort_find_scratch(&f.model, node, is_host, &session, &scratch);
        assert_int_equal(scratch.count, 1 + d);
        assert_int_equal(scratch.rows[0].bytes, 8 * 4); /* lengths */
        assert_int_equal(scratch.rows[1].bytes, cases[i].workspace);
        assert_int_equal(onv_ort_find_kept(&f.model, node, &session, kept), 2);
        assert_int_equal(kept[0], 6488064);
        assert_int_equal(kept[1], cases[i].packed);
        onv_node on_cpu = *node;
        on_cpu.provider = ONV_PROVIDER_CPU;
        assert_int_equal(onv_ort_find_kept(&f.model, &on_cpu, &session, kept), 0);
        free(is_host);
    }
}
