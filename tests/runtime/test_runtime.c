/* The runtimes on models small enough to work out by hand, and what none of them can know. */
#include "api/analysis.h"
#include "runtime/savings.h"
#include "support/flow.h"
#include "support/test.h"

#define MIB (UINT64_C(1) << 20)

/* x -> a -> b -> y, 4 MiB each. */
static model *chain(void)
{
    model *m = model_read(17, "in x f32[1024,1024]", "a = Relu(x) 0", "b = Relu(a) 1",
                          "y = Relu(b) 2", "out y f32");
    return m;
}

static onv_runtime_result run(model *m, const char *runtime, const onv_runtime_options *options)
{
    flow f;
    flow_open_model(&f, m, NULL);
    onv_runtime_result result = flow_run(&f, runtime, options);
    flow_close(&f);
    model_free(m);
    return result;
}

/* --- One by one -------------------------------------------------------------------------------- */

TEST(ideal_is_weights_and_peak)
{
    model *m = model_read(17, "in x f32[2,8]", "weight w f32[8,16]", "h = MatMul(x w) mm",
                          "y = Relu(h) r", "out y f32");
    onv_runtime_result r = run(m, "ideal", NULL);
    assert_int_equal(r.weight_bytes, 512);
    assert_int_equal(r.activation_bytes, 128 + 128); /* h and y, more than x and h */
    assert_int_equal(r.held_bytes, 768);
    assert_int_equal(r.total_bytes.low, 768); /* no context, no workspace */
    assert_int_equal(r.total_bytes.high, 768);
}

TEST(arena_reaches_the_peak_where_it_is_optimal)
{
    onv_runtime_result r = run(chain(), "arena", NULL);
    assert_true(r.optimal);
    assert_int_equal(r.activation_bytes, 8 * MIB);
    assert_int_equal(r.lower_bound_bytes, 8 * MIB);
    assert_int_equal(r.total_bytes.high, 8 * MIB);
}

/* Weights once; of each context x and y all the time, h and its workspace. */
TEST(an_engine_has_weights_once_and_contexts_each)
{
    model *m = model_read(17, "in x f32[2,8]", "weight w f32[8,16]", "h = MatMul(x w) mm",
                          "y = Relu(h) r", "out y f32");
    onv_runtime_options options = {.contexts = 3, .workspace_bytes = 1000};
    onv_runtime_result r = run(m, "tensorrt", &options);
    assert_int_equal(r.weight_bytes, 512);
    assert_int_equal(r.low_bytes, 512 + 3 * (64 + 128 + 128));
    assert_int_equal(r.high_bytes, r.low_bytes + 3000);
    assert_int_equal(r.driver_bytes, 0);
    assert_true(r.context_bytes.low > 0);
}

TEST(torch_holds_inputs_to_the_end)
{
    onv_runtime_options options = {.lower.no_inplace = true};
    onv_runtime_result r = run(chain(), "torch", &options);
    /* At steps 1 and 2: the caller's x and two more. Each is cut from one segment of 20 MiB. */
    assert_int_equal(r.allocated_peak_bytes, 12 * MIB);
    assert_int_equal(r.reserved_peak_bytes, 20 * MIB);
    assert_int_equal(r.held_bytes, 20 * MIB);
    assert_int_equal(r.activation_bytes, 20 * MIB);
    /* nn.ReLU(inplace=True): x is the caller's, what the first one made is overwritten. */
    assert_int_equal(run(chain(), "torch", NULL).allocated_peak_bytes, 8 * MIB);
}

TEST(torch_rounds_weights_in_small_segments)
{
    model *m = model_read(17, "in x f32[2,8]", "weight w f32[8,200]", "weight b f32[200]",
                          "h = MatMul(x w) mm", "y = Add(h b) add", "out y f32");
    onv_runtime_result r = run(m, "torch", NULL);
    assert_int_equal(r.weight_bytes, 6400 + 800);
    /* w 6,656, b 1,024, x 512, the result of the linear layer 2,048, in one small segment. */
    assert_int_equal(r.allocated_peak_bytes, 6656 + 1024 + 512 + 2048);
    assert_int_equal(r.reserved_peak_bytes, 2 * MIB);
    assert_int_equal(r.activation_bytes, 2 * MIB - 7200);
}

TEST(torch_takes_settings_of_its_allocator)
{
    onv_runtime_options options = {.alloc.torch.expandable_segments = true,
                                   .lower.no_inplace = true};
    onv_runtime_result r = run(chain(), "torch", &options);
    assert_int_equal(r.allocated_peak_bytes, 12 * MIB);
    assert_int_equal(r.reserved_peak_bytes, 20 * MIB); /* one page of the large pool */
    options = (onv_runtime_options){.alloc.torch.large_segment_bytes = 12 * MIB,
                                    .lower.no_inplace = true};
    r = run(chain(), "torch", &options);
    assert_int_equal(r.reserved_peak_bytes, 12 * MIB);
}

TEST(async_grows_by_steps)
{
    onv_runtime_options options = {.lower.no_inplace = true};
    onv_runtime_result r = run(chain(), "async", &options);
    assert_int_equal(r.allocated_peak_bytes, 12 * MIB);
    assert_int_equal(r.reserved_peak_bytes, 32 * MIB);
    options.alloc.async.step_bytes = 2 * MIB;
    r = run(chain(), "async", &options);
    assert_int_equal(r.reserved_peak_bytes, 12 * MIB);
}

TEST(unused_inputs_are_held_and_views_are_free)
{
    model *m = model_read(17, "in x f32[1024,1024]", "in shape i64[2]");
    model_node(m, "Transpose", "0", "x", "y", ""); /* a view: nothing new */
    model_output(m, "y", "f32");
    onv_runtime_result r = run(m, "torch", NULL);
    assert_int_equal(r.allocated_peak_bytes, 4 * MIB + 512);
}

/* --- ResNet-18 --------------------------------------------------------------------------------- */

typedef struct loading {
    onv_allocator torch;
    uint32_t n_weights, n_means;
    bool with_counters;
} loading;

static onv_status load_weight(void *context, const onv_value *value, onv_error *err)
{
    loading *l = context;
    ONV_TRY(onv_allocator_alloc(&l->torch, l->n_weights++, value->tensor->bytes, err));
    if (strstr(value->name, "running_var") == NULL) return ONV_OK;
    l->n_means++;
    return l->with_counters ? onv_allocator_alloc(&l->torch, l->n_weights++, 8, err) : ONV_OK;
}

static uint64_t resnet18_bytes(bool with_counters, uint64_t *reserved)
{
    flow f;
    onv_error err = {0};
    loading l = {.with_counters = with_counters};
    flow_open(&f, flow_sample("resnet18-train.onnx"), "batch=1", NULL);
    assert_int_equal(onv_allocator_init(&l.torch, onv_alloc_model_find("torch"), NULL, &err),
                     ONV_OK);
    assert_int_equal(onv_each_device_weight(&f.model, load_weight, &l, &err), ONV_OK);
    assert_int_equal(l.n_means, 20);
    onv_held_figures result;
    onv_allocator_figures(&l.torch, &result);
    onv_allocator_cleanup(&l.torch);
    flow_close(&f);
    *reserved = result.reserved_end;
    return result.allocated_end;
}

/* PyTorch reports 46,861,312 bytes for model.to("cuda"), published. The export has the same weights
 * and running statistics in the same order, but not the 20 counters num_batches_tracked, 8 bytes in
 * blocks of 512. */
TEST(resnet18_weights_are_those_of_pytorch)
{
    uint64_t reserved;
    assert_int_equal(resnet18_bytes(true, &reserved), 46861312);
    assert_int_equal(reserved, 64 * MIB);
    assert_int_equal(resnet18_bytes(false, &reserved), 46861312 - 20 * 512);
    assert_int_equal(reserved, 64 * MIB);
}

/* --- What stays on the host -------------------------------------------------------------------- */

/* How many parts a text has no one knows; on the device it takes nothing. */
TEST(text_is_not_on_the_device)
{
    model *m = model_read(20, "in t str[4]", "in x f32[1024]", "parts n = StringSplit(t) 0",
                          "y = Relu(x) 1", "out y f32");
    assert_int_equal(run(m, "torch", NULL).allocated_peak_bytes, 2 * 4096);
}

TEST(shape_operands_are_not_on_the_device)
{
    static const int64_t shape[] = {64, 16};
    model *m = model_read(17, "in x f32[1024]");
    model_ints(m, "shape", 2, shape);
    model_add(m, "a = Reshape(x shape) 0", "y = Relu(a) 1", "out y f32");
    onv_runtime_result r = run(m, "torch", NULL);
    assert_int_equal(r.weight_bytes, 0);
    assert_int_equal(r.allocated_peak_bytes, 2 * 4096);
}

/* --- Ranges ------------------------------------------------------------------------------------ */

static model *with_nodes(bool conv, bool product)
{
    model *m = model_read(17, "in x f32[1,4,8,8]", "weight w f32[4,4,1,1]", "weight v f32[8,8]");
    model_node(m, conv ? "Conv" : "Add", "0", conv ? "x w" : "x x", "a", "");
    model_node(m, product ? "MatMul" : "Add", "1", product ? "a v" : "a a", "y", "");
    model_output(m, "y", "f32");
    return m;
}

static void expect_handles(bool conv, bool product, uint64_t bytes)
{
    onv_runtime_options options = {.lower.cuda = onv_cuda_library_defaults()};
    onv_runtime_result r = run(with_nodes(conv, product), "torch", &options);
    assert_int_equal(r.driver_bytes, bytes);
    assert_int_equal(r.context_bytes.low, 256 * MIB);
    assert_int_equal(r.context_bytes.high, 600 * MIB);
    assert_int_equal(r.total_bytes.low, r.held_bytes + bytes + 256 * MIB);
    assert_int_equal(r.total_bytes.high, r.held_bytes + bytes + 600 * MIB);
}

TEST(handles_are_of_the_libraries_that_a_model_needs)
{
    expect_handles(false, false, 0);
    expect_handles(true, false, 25348);
    expect_handles(false, true, 132096 + 67108864);
    expect_handles(true, true, 25348 + 132096 + 67108864);
}

/* Of PyTorch they are buffers, and handles stand beside the allocator. */
TEST(workspaces_of_torch_are_allocated)
{
    onv_runtime_options options = {.lower.cuda = onv_cuda_library_defaults()};
    onv_runtime_options none = {0};
    onv_runtime_result plain = run(with_nodes(false, true), "torch", &none);
    onv_runtime_result r = run(with_nodes(false, true), "torch", &options);
    assert_int_equal(plain.driver_bytes, 0);
    assert_int_equal(r.driver_bytes, 1024 + 131072 + 64 * MIB);
    assert_int_equal(r.allocated_peak_bytes, plain.allocated_peak_bytes + 32 * MIB);
    assert_int_equal(r.tensor_peak_bytes, plain.tensor_peak_bytes);
    assert_int_equal(r.total_bytes.low, r.held_bytes + r.driver_bytes + 256 * MIB);
}

/* --- Precision --------------------------------------------------------------------------------- */

static onv_runtime_result with_precision(model *m, onv_precision precision, const char *runtime)
{
    onv_options options = onv_options_default();
    options.precision = precision;
    options.runtimes = runtime;
    onv_analysis *a = model_analyse(m, &options);
    onv_runtime_result info = a->runtimes[0];
    onv_analysis_destroy(a);
    return info;
}

/* Sums are parts of convolutions in both: x, h, their sum and y. */
TEST(an_engine_of_16_bits_is_fused_as_one_of_32)
{
    OWNED_MODEL m =
        model_read(17, "in x f32[1,64,8,8]", "weight w f32[64,64,1,1]", "h = Conv(x w) 0",
                   "a = Conv(h w) 1", "s = Add(a h) 2", "y = Relu(s) 3", "out y f32");
    onv_runtime_result wide = with_precision(m, ONV_PRECISION_FP32, "tensorrt"),
                       half = with_precision(m, ONV_PRECISION_FP16, "tensorrt");
    assert_int_equal(wide.activation_bytes, 4 * 64 * 64 * 4);
    assert_int_equal(half.activation_bytes, 4 * 64 * 64 * 2);
    assert_int_equal(half.weight_bytes, 64 * 64 * 2);
}

TEST(precision_casts_weights_and_activations_apart)
{
    OWNED_MODEL m =
        model_read(17, "in ids i64[8]", "weight table f32[100,16]", "weight half f16[16]",
                   "a = Gather(table ids) 0", "y = Relu(a) 1", "out y f32");
    /* float32: the table and the float16 weight as they are; ids 64 and a 512, then a and y. */
    onv_runtime_result r = with_precision(m, ONV_PRECISION_AS_EXPORTED, "ideal");
    assert_int_equal(r.weight_bytes, 6400 + 32);
    assert_int_equal(r.activation_bytes, 1024);
    /* All floats are cast, in whichever direction; integers are not. */
    r = with_precision(m, ONV_PRECISION_FP32, "ideal");
    assert_int_equal(r.weight_bytes, 6400 + 64);
    assert_int_equal(r.activation_bytes, 1024);
    for (onv_precision p = ONV_PRECISION_FP16; p <= ONV_PRECISION_BF16; p++) {
        r = with_precision(m, p, "ideal");
        assert_int_equal(r.weight_bytes, 3200 + 32);
        assert_int_equal(r.activation_bytes, 512);
    }
}

/* An export in 16 bits: what it computes in float32 is the network's own. */
TEST(what_networks_cast_themselves_stays)
{
    OWNED_MODEL m = model_read(17, "in x bf16[8,16]", "weight w bf16[16,16]", "a = MatMul(x w) 0",
                               "b = Cast(a) 1 to=1", "y = Relu(b) 2", "out y f32");
    static const struct {
        onv_precision precision;
        uint64_t weights, activations;
    } cases[] = {{ONV_PRECISION_AS_EXPORTED, 512, 1024},
                 {ONV_PRECISION_BF16, 512, 1024},
                 {ONV_PRECISION_FP16, 512, 1024},
                 {ONV_PRECISION_FP32, 1024, 1024}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_runtime_result r = with_precision(m, cases[i].precision, "ideal");
        assert_int_equal(r.weight_bytes, cases[i].weights);
        assert_int_equal(r.activation_bytes, cases[i].activations);
    }
}

/* --- Possible savings of the whole graph ------------------------------------------------------------------------------------ */

/* A scalar grows to 4 MiB (a), passes through two operators (b, c) and shrinks again. */
static onv_global_savings savings_of(const char *first, const char *second)
{
    static const int64_t wide[] = {1024, 1024};
    flow f;
    onv_error err = {0};
    onv_global_savings savings;
    model *m = model_read(17, "in x f32[1]");
    model_ints(m, "wide", 2, wide);
    model_node(m, "Expand", "0", "x wide", "a", "");
    model_node(m, first, "1", strcmp(first, "Reshape") == 0 ? "a wide" : "a", "b", "");
    model_node(m, second, "2", strcmp(second, "Reshape") == 0 ? "b wide" : "b", "c", "");
    model_add(m, "y = ReduceSum(c) 3 keepdims=0", "out y f32");
    flow_open_model(&f, m, NULL);
    assert_int_equal(
        onv_global_savings_compute(&f.model, &f.live, f.live.peak_bytes - 5, &savings, &err),
        ONV_OK);
    assert_int_equal(f.live.peak_bytes, 8 * MIB);
    flow_close(&f);
    model_free(m);
    return savings;
}

TEST(global_savings_are_computed)
{
    onv_global_savings l = savings_of("Reshape", "Reshape");
    assert_int_equal(l.of[ONV_GLOBAL_SAVING_VIEWS].peak_bytes, 4 * MIB + 4); /* with x, or with y */
    assert_int_equal(l.of[ONV_GLOBAL_SAVING_VIEWS].saved_bytes, 4 * MIB - 4);
    assert_int_equal(l.of[ONV_GLOBAL_SAVING_INPLACE].peak_bytes, 4 * MIB + 4);
    assert_int_equal(l.of[ONV_GLOBAL_SAVING_HALF].peak_bytes, 4 * MIB);
    assert_int_equal(l.of[ONV_GLOBAL_SAVING_HALF].saved_bytes, 4 * MIB);
    assert_int_equal(l.of[ONV_GLOBAL_SAVING_ORDER].saved_bytes, 5);
    l = savings_of("Reshape", "Transpose"); /* c is not where b is */
    assert_int_equal(l.of[ONV_GLOBAL_SAVING_VIEWS].saved_bytes, 0);
    assert_int_equal(l.of[ONV_GLOBAL_SAVING_INPLACE].saved_bytes, 0);
    l = savings_of("Reshape", "Relu");
    assert_int_equal(l.of[ONV_GLOBAL_SAVING_VIEWS].saved_bytes, 0);
    assert_int_equal(l.of[ONV_GLOBAL_SAVING_INPLACE].saved_bytes, 4 * MIB - 4);
}
