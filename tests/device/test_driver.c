/* The way through a CUDA driver, on the fake one: what it finds, says and gives back. The fake aborts
 * when something is not given back at the end, so every replay here is also a test of that. */
#include <unistd.h>

#include "device/cuda_driver.h"
#include "device/make_replay.h"
#include "device/replay.h"
#include "runtime/runtime.h"
#include "support/test.h"

static const char *const settings[] = {
    "ONNXVRAM_FAKE_BYTES", "ONNXVRAM_FAKE_GRANULARITY", "ONNXVRAM_FAKE_DEVICES",
    "ONNXVRAM_FAKE_FAIL",  "ONNXVRAM_FAKE_LOSE",        "ONNXVRAM_FAKE_FOREIGN",
    "ONNXVRAM_FAKE_KEEP",  "ONNXVRAM_FAKE_POOLS",       "ONNXVRAM_FAKE_CALLS",
    "ONNXVRAM_FAKE_ERROR", "ONNXVRAM_FAKE_KERNELS",
};

#define CONTEXT_BYTES (UINT64_C(300) << 20)

static int reset(void **state)
{
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) unsetenv(settings[i]);
    return setenv("ONNXVRAM_CUDA_DRIVER", ONV_BUILD_DIR "/tests/libonnxvram_fake_cuda.so", 1);
}

static void set(const char *name, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    setenv(name, text, 1);
}

/* A small model's replay: 1.25 MiB in all, some ten buffers. */
static void make_small(const char *runtime, onv_replay *made, flow *f)
{
    onv_error err = {0};
    OWNED_MODEL m = model_read(
        17, "in x f32[1,64,32,32]", "weight w f32[64,64,3,3]", "a = Conv(x w) conv1 pads=[1,1,1,1]",
        "b = Relu(a) relu1", "c = Conv(b w) conv2 pads=[1,1,1,1]", "y = Add(b c) add", "out y f32");
    flow_open_model(f, m, onv_runtime_find(runtime)->order);
    if (make_replay(f, runtime, made, &err) != ONV_OK) fail_msg("%s", err.message);
}

/* One replay from opening the driver to unloading it. The timeline is gone when this returns. */
static onv_status replay(const char *runtime, onv_device_info *info, onv_replay_result *r,
                         onv_error *err)
{
    flow f;
    onv_replay made;
    onv_device device;
    *r = (onv_replay_result){0};
    make_small(runtime, &made, &f);
    onv_status status = onv_device_open(&device, onv_device_kind_find("cuda"), 0, err);
    if (status == ONV_OK) {
        status = onv_replay_run(&made, &device, NULL, r, err);
        onv_replay_result_cleanup(r);
        if (info != NULL) *info = device.info;
        onv_device_close(&device);
    }
    onv_replay_cleanup(&made);
    flow_close(&f);
    return status;
}

static onv_replay_result replay_well(const char *runtime, onv_device_info *info)
{
    onv_error err = {0};
    onv_replay_result r;
    if (replay(runtime, info, &r, &err) != ONV_OK) fail_msg("%s", err.message);
    return r;
}

static void refused(const char *message)
{
    onv_error err = {0};
    onv_replay_result r;
    assert_int_equal(replay("arena", NULL, &r, &err), ONV_ERR_DEVICE);
    if (strstr(err.message, message) == NULL) fail_msg("not '%s': %s", message, err.message);
    assert_null(strchr(err.message, '\n'));
}

/* --- Who is there ------------------------------------------------------------------------------ */

TEST_WITH(it_never_calls_itself_a_gpu, reset, NULL)
{
    onv_device_info info;
    onv_replay_result r = replay_well("arena", &info);
    assert_true(r.agrees);
    assert_false(info.is_gpu);
    assert_string_equal(info.name, "fake driver (no GPU)");
    assert_string_equal(info.filled_by, "copies");
    assert_true(info.has_context);
    assert_int_equal(info.context_bytes, CONTEXT_BYTES);
    assert_int_equal(info.total_bytes - info.free_bytes, CONTEXT_BYTES);
}

TEST_WITH(a_driver_that_cannot_be_used_is_one_clear_line, reset, NULL)
{
    setenv("ONNXVRAM_CUDA_DRIVER", "/nonexistent/libcuda.so", 1);
    refused("ONNXVRAM_CUDA_DRIVER");
    setenv("ONNXVRAM_CUDA_DRIVER", "libm.so.6", 1);
    refused("too old: no cuInit");
    reset(NULL);
    set("ONNXVRAM_FAKE_DEVICES", 0);
    refused("sees no GPU");
}

TEST_WITH(without_the_variable_it_is_the_real_driver, reset, NULL)
{
    onv_error err = {0};
    onv_device device;
    setenv("ONNXVRAM_CUDA_DRIVER", "", 1);
    onv_status status = onv_device_open(&device, onv_device_kind_find("cuda"), 0, &err);
    if (status == ONV_OK) {
        assert_true(device.info.is_gpu);
        onv_device_close(&device);
        return;
    }
    assert_int_equal(status, ONV_ERR_DEVICE);
    assert_true(err.message[0] != '\0');
}

TEST_WITH(without_pools_one_mode_is_missing, reset, NULL)
{
    onv_error err = {0};
    onv_replay_result r;
    set("ONNXVRAM_FAKE_POOLS", 0);
    assert_true(replay_well("torch", NULL).agrees);
    assert_int_equal(replay("async", NULL, &r, &err), ONV_ERR_DEVICE);
    assert_non_null(strstr(err.message, "pool"));
}

/* --- What is measured -------------------------------------------------------------------------- */

TEST_WITH(every_mode_agrees_to_the_byte, reset, NULL)
{
    for (size_t i = 0; i < onv_n_runtimes; i++) {
        onv_replay_result r = replay_well(onv_runtimes[i]->name, NULL);
        if (!r.agrees) fail_msg("%s: %s", onv_runtimes[i]->name, r.faults[0].text);
        assert_int_equal(r.measured_bytes, r.predicted_bytes);
        assert_int_equal(r.device_free.after, r.device_free.before);
        assert_int_equal(r.checked_buffers, r.buffers);
    }
}

/* Only builds with the CUDA Toolkit have kernels. Those that do not work are found out and left. */
TEST_WITH(kernels_are_used_where_they_work, reset, NULL)
{
    onv_device_info info;
    const char *best = onv_cuda_kernels.bytes > 0 ? "kernels" : "copies";
    for (size_t i = 0; i < onv_n_runtimes; i++) {
        set("ONNXVRAM_FAKE_KERNELS", 1);
        onv_replay_result r = replay_well(onv_runtimes[i]->name, &info);
        assert_string_equal(info.filled_by, best);
        if (!r.agrees) fail_msg("%s: %s", onv_runtimes[i]->name, r.faults[0].text);
        assert_int_equal(r.checked_buffers, r.buffers);
        assert_int_equal(r.device_free.after, r.device_free.before);
    }
    set("ONNXVRAM_FAKE_KERNELS", 2);
    assert_true(replay_well("ideal", &info).agrees);
    assert_string_equal(info.filled_by, "copies");
}

TEST_WITH(granules_are_tolerated, reset, NULL)
{
    set("ONNXVRAM_FAKE_GRANULARITY", 1 << 21);
    onv_replay_result r = replay_well("ideal", NULL);
    assert_true(r.agrees);
    assert_int_equal(r.granularity_bytes, 1 << 21);
    assert_int_equal(r.most_allocations, 4); /* three values and the weight */
    assert_int_equal(r.tolerance_bytes, 4 * ((1 << 21) - 1));
    assert_int_equal(r.measured_bytes, 4 << 21);
}

/* What somebody else takes between two calls of ours is told apart from what we hold. */
TEST_WITH(others_are_noticed, reset, NULL)
{
    set("ONNXVRAM_FAKE_FOREIGN", 12345678);
    onv_replay_result r = replay_well("ideal", NULL);
    assert_true(r.agrees);
    assert_int_equal(r.foreign_bytes, 12345678);
    assert_int_equal(r.tolerance_bytes, 12345678);
    assert_int_equal(r.measured_bytes, r.predicted_bytes);
    assert_int_equal(r.device_free.before - r.device_free.after, 12345678);
}

TEST_WITH(memory_that_stays_away_is_noticed, reset, NULL)
{
    set("ONNXVRAM_FAKE_KEEP", 2);
    onv_replay_result r = replay_well("ideal", NULL);
    assert_false(r.agrees);
    bool found = false;
    for (uint64_t i = 0; i < r.n_faults; i++) found |= r.faults[i].kind == ONV_FAULT_NOT_BACK;
    assert_true(found);
}

TEST_WITH(a_write_that_is_lost_is_found, reset, NULL)
{
    set("ONNXVRAM_FAKE_LOSE", 2);
    onv_replay_result r = replay_well("ideal", NULL);
    assert_false(r.agrees);
    assert_int_equal(r.n_faults, 1);
    assert_int_equal(r.faults[0].kind, ONV_FAULT_LOST);
    assert_int_equal(r.faults[0].offset, 0);
}

/* --- No memory --------------------------------------------------------------------------------- */

TEST_WITH(no_memory_is_a_result, reset, NULL)
{
    for (size_t i = 0; i < onv_n_runtimes; i++) {
        reset(NULL);
        uint64_t needed = replay_well(onv_runtimes[i]->name, NULL).predicted_bytes;
        for (uint64_t capacity = 0; capacity < needed; capacity += needed / 7 + 1) {
            set("ONNXVRAM_FAKE_BYTES", CONTEXT_BYTES + capacity);
            onv_replay_result r = replay_well(onv_runtimes[i]->name, NULL);
            if (!r.out_of_memory || !r.agrees)
                fail_msg("%s with %llu of %llu bytes", onv_runtimes[i]->name,
                         (unsigned long long)capacity, (unsigned long long)needed);
            assert_true(r.oom.bytes > 0);
        }
    }
}

TEST_WITH(no_memory_where_it_should_suffice_is_a_fault, reset, NULL)
{
    flow f;
    onv_replay made;
    onv_device device;
    onv_error err = {0};
    onv_replay_result r;
    make_small("ideal", &made, &f);
    assert_int_equal(onv_device_open(&device, onv_device_kind_find("cuda"), 300000, &err), ONV_OK);
    assert_int_equal(onv_replay_run(&made, &device, NULL, &r, &err), ONV_OK);
    assert_true(r.out_of_memory);
    assert_false(r.agrees);
    assert_int_equal(r.faults[0].kind, ONV_FAULT_NO_MEMORY);
    onv_replay_result_cleanup(&r);
    onv_device_close(&device);
    onv_replay_cleanup(&made);
    flow_close(&f);
}

/* --- Failures ---------------------------------------------------------------------------------- */

static uint64_t count_calls(const char *runtime)
{
    char path[] = "/tmp/onnxvram-calls-XXXXXX";
    int file = mkstemp(path);
    unsigned long long calls = 0;
    assert_true(file >= 0);
    close(file);
    setenv("ONNXVRAM_FAKE_CALLS", path, 1);
    assert_true(replay_well(runtime, NULL).agrees);
    unsetenv("ONNXVRAM_FAKE_CALLS");
    FILE *from = fopen(path, "r");
    assert_non_null(from);
    assert_int_equal(fscanf(from, "%llu", &calls), 1);
    fclose(from);
    unlink(path);
    return calls;
}

/* Each call in turn fails once. Where the program can do without it (NVML, the granularity, kernels),
 * the replay goes on; else it ends with the name of a function. Nothing stays behind. */
static void fail_each_call(const char *runtime, uint64_t dispensable, uint64_t error,
                           const char *name)
{
    uint64_t calls = count_calls(runtime), refused = 0;
    assert_true(calls > 30);
    set("ONNXVRAM_FAKE_ERROR", error);
    for (uint64_t n = 1; n <= calls; n++) {
        onv_error err = {0};
        onv_replay_result r;
        set("ONNXVRAM_FAKE_FAIL", n);
        onv_status status = replay(runtime, NULL, &r, &err);
        refused += status != ONV_OK || !r.agrees;
        if (status == ONV_OK) continue;
        assert_int_equal(status, ONV_ERR_DEVICE);
        if (strstr(err.message, name) == NULL)
            fail_msg("%s, call %llu: %s", runtime, (unsigned long long)n, err.message);
    }
    set("ONNXVRAM_FAKE_FAIL", 0);
    assert_true(refused + dispensable > calls);
}

TEST_WITH(a_failure_at_any_call_leaves_nothing_behind, reset, NULL)
{
    for (size_t i = 0; i < onv_n_runtimes; i++) {
        set("ONNXVRAM_FAKE_KERNELS", i % 2);
        uint64_t dispensable = i % 2 ? 32 : 16;
        fail_each_call(onv_runtimes[i]->name, dispensable, 999, "CUDA_ERROR_UNKNOWN (999)");
        fail_each_call(onv_runtimes[i]->name, dispensable, 2, "CUDA_ERROR_OUT_OF_MEMORY (2)");
    }
}

/* An allocation that is refused where all should fit is a fault of its own. */
TEST_WITH(no_memory_at_an_allocation_is_named, reset, NULL)
{
    uint64_t calls = count_calls("ideal"), named = 0;
    set("ONNXVRAM_FAKE_ERROR", 2);
    for (uint64_t n = 1; n <= calls; n++) {
        onv_error err = {0};
        onv_replay_result r;
        set("ONNXVRAM_FAKE_FAIL", n);
        if (replay("ideal", NULL, &r, &err) != ONV_OK || !r.out_of_memory) continue;
        assert_false(r.agrees);
        assert_int_equal(r.faults[0].kind, ONV_FAULT_NO_MEMORY);
        named++;
    }
    assert_int_equal(named, 6); /* five values and the weight */
}

#ifdef ONV_FAULT_INJECTION
#include "base/heap.h"

TEST_WITH(without_host_memory_nothing_stays_behind, reset, NULL)
{
    flow f;
    onv_replay made;
    onv_error err = {0};
    onv_status status = ONV_ERR_MEMORY;
    make_small("torch", &made, &f);
    for (long n = 0; status != ONV_OK; n++) {
        onv_device device;
        onv_replay_result r;
        assert_true(n < 1000);
        onv_heap_fail_after(n);
        status = onv_device_open(&device, onv_device_kind_find("cuda"), 0, &err);
        if (status == ONV_OK) {
            status = onv_replay_run(&made, &device, NULL, &r, &err);
            onv_replay_result_cleanup(&r);
            onv_device_close(&device);
        }
        onv_heap_fail_after(-1);
        assert_true(status == ONV_OK || status == ONV_ERR_MEMORY);
    }
    onv_replay_cleanup(&made);
    flow_close(&f);
}

/* The same for the making of replays. */
TEST_WITH(replays_survive_missing_memory, reset, NULL)
{
    for (size_t i = 0; i < onv_n_runtimes; i++) {
        flow f;
        onv_replay made;
        onv_status status = ONV_ERR_MEMORY;
        make_small(onv_runtimes[i]->name, &made, &f);
        onv_replay_cleanup(&made);
        for (long n = 0; status != ONV_OK; n++) {
            onv_error err = {0};
            assert_true(n < 10000);
            onv_heap_fail_after(n);
            status = make_replay(&f, onv_runtimes[i]->name, &made, &err);
            onv_heap_fail_after(-1);
            assert_true(status == ONV_OK || status == ONV_ERR_MEMORY);
        }
        onv_replay_cleanup(&made);
        flow_close(&f);
    }
}
#endif

/* --- Stopping ---------------------------------------------------------------------------------- */

static bool count_down(void *context)
{
    int *left = context;
    return (*left)-- == 0;
}

TEST_WITH(a_request_to_stop_leaves_nothing_behind, reset, NULL)
{
    flow f;
    onv_replay made;
    onv_status status = ONV_ERR_CANCELLED;
    make_small("torch", &made, &f);
    for (int n = 0; status != ONV_OK; n++) {
        int left = n;
        onv_error err = {0};
        onv_device device;
        onv_replay_result r;
        onv_replay_options options = {.cancelled = count_down, .cancel_context = &left};
        assert_int_equal(onv_device_open(&device, onv_device_kind_find("cuda"), 0, &err), ONV_OK);
        status = onv_replay_run(&made, &device, &options, &r, &err);
        assert_true(status == ONV_OK || status == ONV_ERR_CANCELLED);
        assert_true(status == ONV_OK || n < (int)made.placement.events.count);
        onv_replay_result_cleanup(&r);
        onv_device_close(&device);
    }
    onv_replay_cleanup(&made);
    flow_close(&f);
}
