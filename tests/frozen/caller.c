/* A program that was compiled against some header: sets options, asks everything, prints the answers.
 *
 *     caller MODEL.onnx
 *
 * tests/project/frozen.sh compiles it against each released header and runs it with the present library. It uses only what
 * the oldest of them has. */
#include "onnxvram.h"

#include <inttypes.h>
#include <stdio.h>

#define PRINT(what, value) printf("%s %" PRIu64 "\n", what, (uint64_t)(value))

static void print_tensors(const onv_analysis *a)
{
    onv_tensor_info t;
    uint64_t bytes = 0, steps = 0;
    size_t n = onv_analysis_tensor_count(a), live = 0;
    for (size_t i = 0; onv_analysis_tensor(a, i, &t); i++) {
        if (t.bytes != ONV_SIZE_UNKNOWN) bytes += t.bytes;
        live += t.live;
        steps += t.first_step + t.last_step;
    }
    printf("tensors %zu live %zu bytes %" PRIu64 " steps %" PRIu64 "\n", n, live, bytes, steps);
    if (onv_analysis_tensor(a, n / 2, &t)) printf("%s %s %s\n", t.name, t.dtype, t.shape);
}

static void print_answer(const onv_analysis *a)
{
    onv_answer_runtime_info r;
    onv_figure figure;
    for (size_t i = 0; onv_analysis_answer_runtime(a, i, &r); i++)
        printf("%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", r.name, r.low_bytes,
               r.high_bytes, r.weight_bytes, r.library_bytes, r.set_by);
    for (size_t i = 0; onv_analysis_figure(a, i, &figure); i++) PRINT(figure.what, figure.bytes);
}

static void print_devices(const onv_analysis *a)
{
    onv_answer_device_info device;
    for (size_t i = 0; onv_analysis_answer_device(a, i, &device); i++)
        printf("%s %" PRIu64 " %d\n", device.name, device.fit.usable, device.fit.fits);
    onv_gpu_info gpus[2];
    size_t n = onv_gpu_by_name("T4", gpus, 2);
    printf("T4: %zu %s %" PRIu64 "\n", n, gpus[0].name, gpus[0].usable_bytes);
    n = onv_gpu_by_name("RTX", gpus, 2);
    printf("RTX: %zu%s%s\n", n, n > 1 ? ", the second: " : "", n > 1 ? gpus[1].name : "");
}

static bool count_bytes(void *context, const char *text, size_t bytes)
{
    (void)text;
    *(size_t *)context += bytes;
    return true;
}

int main(int argc, char **argv)
{
    onv_limits limits = onv_limits_default();
    onv_budget budgets[] = {{"small", (uint64_t)1 << 30, 75}, {"large", (uint64_t)40 << 30, 80}};
    onv_options options = onv_options_default();
    if (argc != 2 || !onv_limits_set(&limits, "seconds", 60)) return 2;
    PRINT("seconds", limits.seconds);
    options.limits = &limits;
    options.batch = 3;
    options.runtimes = "ideal,torch,ort";
    options.train = "adamw";
    options.checkpoint = "none,sqrt";
    options.margin_percent = 10;
    options.budgets = budgets;
    options.n_budgets = 2;
    onv_analysis *a;
    onv_error error;
    if (onv_analysis_new(argv[1], &options, &a, &error) != ONV_OK) {
        printf("%s\n", error.message);
        return 1;
    }
    onv_summary sums;
    onv_analysis_summary(a, &sums);
    PRINT("nodes", sums.nodes);
    PRINT("peak", sums.peak_bytes);
    PRINT("step", sums.peak_step);
    PRINT("macs", sums.macs);
    PRINT("weights", sums.parameter_bytes);
    print_tensors(a);
    print_answer(a);
    print_devices(a);
    size_t bytes = 0;
    onv_report_options how = onv_report_options_default();
    how.width = 100;
    how.top = 3;
    if (onv_report((const onv_analysis *const *)&a, 1, ONV_FORMAT_TEXT, &how, count_bytes, &bytes,
                   &error) != ONV_OK)
        return 1;
    PRINT("report", bytes);
    onv_analysis_destroy(a);
    return 0;
}
