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

static void print_peak(const onv_analysis *analysis)
{
    onv_summary summary = {0};
    onv_analysis_summary(analysis, &summary);
    printf("weights %" PRIu64 " bytes\n", summary.parameter_bytes);
    printf("peak    %" PRIu64 " bytes at step %" PRIu64 " of %" PRIu64 "\n", summary.peak_bytes,
           summary.peak_step, summary.nodes);
    if (!summary.sized)
        printf("        without %" PRIu64 " tensors of unknown size\n", summary.unknown_tensors);

    /* What is live at that step, the largest first. */
    onv_tensor_info tensor;
    for (size_t i = 0; i < LARGEST; i++)
        if (onv_analysis_tensor(analysis, onv_analysis_peak_tensor(analysis, i), &tensor))
            printf("        %" PRIu64 " bytes: %s %s%s\n", tensor.bytes, tensor.name, tensor.dtype,
                   tensor.shape);
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
