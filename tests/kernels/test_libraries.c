/* What cuBLAS and cuDNN take for products and recurrent modules: what the CUDA builds of PyTorch asked for over a
 * substitute for the driver. */
#include "kernels/cublas.h"
#include "kernels/cudnn.h"
#include "kernels/reduction.h"
#include "support/test.h"

static onv_cuda_library_settings on(uint32_t capability, uint32_t pytorch)
{
    onv_cuda_library_settings settings = onv_cuda_library_defaults();
    settings.compute_capability = capability;
    settings.pytorch = pytorch;
    return settings;
}

TEST(products_take_the_workspace_of_their_device)
{
    static const struct {
        uint32_t capability, pytorch;
        uint64_t bytes, kept_bytes;
    } rows[] = {{90, 2015, 33554432, 0},  {80, 2015, 8519680, 0},  {86, 2015, 8519680, 0},
                {89, 2015, 8519680, 0},   {90, 2006, 0, 33554432}, {86, 2006, 0, 8519680},
                {120, 2015, 33554432, 0}, {120, 2008, 0, 8519680}, {90, 1013, 0, 0},
                {0, 2015, 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        onv_cuda_library_settings settings = on(rows[i].capability, rows[i].pytorch);
        onv_cublas_workspace w = onv_cublas_product(&settings);
        assert_int_equal(w.bytes, rows[i].bytes);
        assert_int_equal(w.kept_bytes, rows[i].kept_bytes);
        assert_false(w.is_lt);
    }
}

TEST(a_bias_is_added_by_cublaslt)
{
    onv_cuda_library_settings now = on(90, 2015), shared = on(90, 2010), before = on(80, 2006);
    assert_int_equal(onv_cublas_linear(128, 256, true, &now).bytes, 1 << 20);
    assert_true(onv_cublas_linear(2, 2, true, &now).is_lt);
    /* A row or a column alone, no bias. */
    assert_int_equal(onv_cublas_linear(1, 256, true, &now).bytes, 33554432);
    assert_int_equal(onv_cublas_linear(128, 1, true, &now).bytes, 33554432);
    assert_int_equal(onv_cublas_linear(128, 256, false, &now).bytes, 33554432);
    assert_int_equal(onv_cublas_linear(128, 256, true, &now).kept_bytes, 0);
    assert_int_equal(onv_cublas_linear(128, 256, true, &shared).bytes, 0);
    assert_int_equal(onv_cublas_linear(128, 256, true, &shared).kept_bytes, 33554432);
    /* Its handle is cuBLAS's, which is given its memory at once. */
    assert_int_equal(onv_cublas_linear(128, 256, true, &before).bytes, 1 << 20);
    assert_int_equal(onv_cublas_linear(128, 256, true, &before).kept_bytes, 8519680);
    onv_cuda_library_settings first = on(80, 1013);
    assert_int_equal(onv_cublas_linear(128, 256, true, &first).kept_bytes, 0);
}

/* x.sum(0) of [inputs, outputs], PyTorch 2.15 as on an H100. */
TEST(sums_of_columns_share_a_buffer)
{
    static const struct {
        uint64_t inputs, outputs;
        uint32_t elem;
        uint64_t bytes;
    } rows[] = {
        {25088, 384, 4, 77070348},    {25088, 288, 2, 57802764}, {8192, 16384, 4, 142606848},
        {1024, 1024, 4, 8388640},     {6272, 576, 4, 28901396},  {3000, 770, 4, 4730932},
        {11094, 318, 4, 7082516},     {177021, 563, 4, 3170888}, {1000000, 10, 4, 168968},
        {131072, 1, 4, 68},           {788, 3072, 4, 0},         {512, 512, 4, 0},
        {232071, 3096, 2, 359829604}, {1024, 1023, 4, 0},        {0, 4, 4, 0},
        {232071, 3096, 4, 180707428}};
    onv_cuda_library_settings h100 = on(90, 2015), none = on(0, 2015);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        onv_column_sum sum = onv_column_sum_of(rows[i].inputs, rows[i].outputs, rows[i].outputs,
                                               rows[i].elem, sizeof(float), &h100);
        assert_int_equal(sum.part_bytes + sum.counter_bytes, rows[i].bytes);
        sum = onv_column_sum_of(rows[i].inputs, rows[i].outputs, rows[i].outputs, rows[i].elem,
                                sizeof(float), &none);
        assert_int_equal(sum.part_bytes + sum.counter_bytes, 0);
    }
    assert_int_equal(onv_column_sum_of(2048, 2048, 2048, 4, sizeof(float), &h100).part_bytes,
                     33554432);
    assert_int_equal(onv_column_sum_of(2048, 2048, 2048, 4, sizeof(float), &h100).counter_bytes,
                     64);
    assert_int_equal(
        onv_column_sum_of(UINT64_MAX, UINT64_MAX, UINT64_MAX, 4, sizeof(float), &h100).part_bytes,
        0);
    assert_int_equal(
        onv_column_sum_of(UINT64_MAX, 1, 1, UINT32_MAX, sizeof(float), &h100).part_bytes, 0);
    /* The largest along 1,024 rows keep a place beside each value. */
    assert_int_equal(onv_column_sum_of(1024, 8 * 768, 768, 4, 16, &h100).part_bytes, 201326592);
    /* Pixels of eight images: 32, 96 and 144 channels, side by side. */
    assert_int_equal(onv_column_sum_of(12544, 256, 32, 4, sizeof(float), &h100).part_bytes,
                     25690112);
    assert_int_equal(onv_column_sum_of(3136, 768, 96, 4, sizeof(float), &h100).part_bytes,
                     19267584);
    assert_int_equal(onv_column_sum_of(3136, 1152, 144, 4, sizeof(float), &h100).part_bytes,
                     28901376);
    assert_int_equal(onv_column_sum_of(3136, 1152, 144, 4, sizeof(float), &h100).counter_bytes, 36);
}

TEST(handles_stand_beside_the_allocator)
{
    static const struct {
        uint32_t capability;
        uint64_t two_of_both; /* as two threads have them */
    } rows[] = {{90, 134532616}, {80, 17082888}, {86, 17072904}, {89, 17090568}, {0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        onv_cuda_library_settings settings = on(rows[i].capability, 2015);
        assert_int_equal(
            2 * (onv_cublas_handle_bytes(&settings) + onv_cudnn_handle_bytes(&settings)),
            rows[i].two_of_both);
    }
}

/* Steps, batch, input, hidden, layers. */
TEST(recurrent_modules_take_what_was_measured)
{
    enum { L = ONV_RNN_LSTM, G = ONV_RNN_GRU, R = ONV_RNN_PLAIN };
    static const struct {
        int cell;
        onv_dtype dtype;
        int64_t steps, batch, input, hidden;
        uint32_t layers;
        bool both, training;
        uint32_t capability;
        uint64_t bytes;
    } rows[] = {
        {L, ONV_FLOAT, 64, 8, 128, 256, 1, false, true, 90, 12927296},
        {L, ONV_FLOAT, 64, 8, 128, 256, 2, false, false, 90, 23494976},
        {L, ONV_FLOAT, 64, 8, 512, 256, 1, false, false, 90, 15286592},
        {L, ONV_FLOAT, 64, 8, 128, 64, 1, false, true, 90, 9789760},
        {L, ONV_FLOAT, 64, 32, 128, 512, 1, false, true, 90, 36307456},
        {L, ONV_BFLOAT16, 64, 8, 128, 256, 1, false, true, 90, 10658112},
        {L, ONV_FLOAT16, 64, 16, 256, 256, 1, false, true, 90, 21037440},
        {L, ONV_FLOAT16, 4, 16, 256, 256, 1, false, false, 90, 10224000},
        {L, ONV_FLOAT16, 64, 64, 512, 1024, 1, false, false, 80, 202375936},
        {L, ONV_FLOAT16, 64, 16, 256, 256, 1, false, false, 86, 12665216},
        {L, ONV_FLOAT16, 64, 16, 256, 128, 1, false, true, 90, 11190656},
        {L, ONV_FLOAT16, 64, 12, 256, 256, 1, false, true, 90, 11864416},
        {L, ONV_FLOAT16, 64, 136, 256, 256, 1, false, true, 90, 36943168},
        {L, ONV_FLOAT16, 64, 16, 200, 256, 1, false, true, 90, 12435840},
        {L, ONV_FLOAT16, 64, 16, 256, 1152, 1, false, true, 90, 34054528},
        {G, ONV_FLOAT, 64, 8, 128, 256, 1, false, true, 90, 12230976},
        {G, ONV_FLOAT, 50, 7, 100, 200, 1, false, true, 90, 10536928},
        {R, ONV_FLOAT, 64, 8, 128, 256, 1, false, true, 90, 11452736},
        {R, ONV_FLOAT, 64, 8, 128, 256, 2, true, true, 90, 42959168},
        {R, ONV_FLOAT16, 200, 2, 100, 100, 2, false, true, 80, 645088},
        {L, ONV_FLOAT, 64, 20, 128, 256, 1, false, true, 80, 17375648},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        onv_rnn_problem p = {.cell = (onv_rnn_cell)rows[i].cell,
                             .dtype = rows[i].dtype,
                             .steps = rows[i].steps,
                             .batch = rows[i].batch,
                             .input = rows[i].input,
                             .hidden = rows[i].hidden,
                             .layers = rows[i].layers,
                             .bidirectional = rows[i].both};
        onv_cuda_library_settings settings = on(rows[i].capability, 2015);
        double bytes = (double)onv_cudnn_rnn_workspace(&p, rows[i].training, &settings);
        if (bytes < 0.995 * (double)rows[i].bytes || bytes > 1.005 * (double)rows[i].bytes)
            fail_msg("row %zu: %.0f for %llu", i, bytes, (unsigned long long)rows[i].bytes);
    }
}

TEST(sizes_that_do_not_fit_are_told)
{
    onv_cuda_library_settings settings = onv_cuda_library_defaults();
    onv_rnn_problem p = {ONV_RNN_LSTM, ONV_FLOAT, INT64_MAX, 2, 3, 4, 1, false};
    assert_int_equal(onv_cudnn_rnn_workspace(&p, true, &settings), UINT64_MAX);
    p = (onv_rnn_problem){ONV_RNN_GRU, ONV_FLOAT, 1, 1, INT64_MAX, INT64_MAX, UINT32_MAX, true};
    assert_int_equal(onv_cudnn_rnn_workspace(&p, false, &settings), UINT64_MAX);
    p.steps = -1;
    assert_int_equal(onv_cudnn_rnn_workspace(&p, false, &settings), UINT64_MAX);
}

/* Dropout between recurrent layers: what reserves had more with it, and what the first call took alone. */
TEST(recurrent_dropout_takes_bits_and_states)
{
    static const struct {
        uint64_t values;
        bool both;
        uint64_t bytes; /* for one place between layers */
    } masks[] = {
        {131072, false, 16384}, {70000, false, 8768}, {140000, true, 35008}, {0, false, 0}};
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++)
        assert_int_equal(onv_cudnn_rnn_dropout_bytes(masks[i].values, masks[i].both),
                         masks[i].bytes);
    static const struct {
        uint32_t capability;
        uint64_t bytes;
    } devices[] = {{90, 6488064}, {80, 5308416}, {86, 3022848}, {89, 4718592}, {0, 0}};
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        onv_cuda_library_settings settings = on(devices[i].capability, 2015);
        assert_int_equal(onv_cudnn_dropout_state(&settings), devices[i].bytes);
    }
}
