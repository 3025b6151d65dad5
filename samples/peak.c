/* The peak of a model and what stands in memory at that moment.
 *
 *     cc peak.c -o peak $(pkg-config --cflags --libs onnxvram)
 *     ./peak resnet50.onnx 256
 */
#include <inttypes.h>
#include <onnxvram/onnxvram.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGEST = 3 };

static bool is_live_at(const onv_tensor_info *tensor, uint64_t step)
{
    return tensor->live && tensor->bytes != ONV_SIZE_UNKNOWN && tensor->first_step <= step &&
           step <= tensor->last_step;
}

/* The largest tensors that are live at `step`, in falling order, with one place more for the
 * newcomer that is compared. Returns how many there are. */
static size_t find_largest(const onv_analysis *analysis, uint64_t step,
                           onv_tensor_info largest[LARGEST + 1])
{
    size_t found = 0;
    onv_tensor_info tensor;
    for (size_t i = 0; onv_analysis_tensor(analysis, i, &tensor); i++) {
        if (!is_live_at(&tensor, step)) continue;
        size_t at = found;
        for (; at > 0 && largest[at - 1].bytes < tensor.bytes; at--) largest[at] = largest[at - 1];
        largest[at] = tensor;
        if (found < LARGEST) found++;
    }
    return found;
}

static void print_peak(const onv_analysis *analysis)
{
    onv_summary summary = {0};
    onv_analysis_summary(analysis, &summary);
    printf("weights %" PRIu64 " bytes\n", summary.parameter_bytes);
    printf("peak    %" PRIu64 " bytes at step %" PRIu64 " of %" PRIu64 "\n", summary.peak_bytes,
           summary.peak_step, summary.nodes);
    if (!summary.sized)
        printf("        without %" PRIu64 " tensors of unknown size\n", summary.unknown_tensors);

    onv_tensor_info largest[LARGEST + 1];
    size_t found = find_largest(analysis, summary.peak_step, largest);
    for (size_t i = 0; i < found; i++)
        printf("        %" PRIu64 " bytes: %s %s%s\n", largest[i].bytes, largest[i].name,
               largest[i].dtype, largest[i].shape);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s MODEL.onnx [BATCH]\n", argv[0]);
        return 2;
    }
    onv_options options = onv_options_default();
    if (argc > 2) options.batch = strtoll(argv[2], NULL, 10);

    onv_analysis *analysis;
    onv_error error = {0};
    if (onv_analysis_new(argv[1], &options, &analysis, &error) != ONV_OK) {
        fprintf(stderr, "%s: %s\n", argv[1], error.message);
        return 1;
    }
    print_peak(analysis);
    onv_analysis_destroy(analysis);
    return 0;
}
