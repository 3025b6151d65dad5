/* onnxvram attach MODEL.onnx PROGRAM -o OUT.onnx */
#include <getopt.h>
#include <stdio.h>

#include "cli/message.h"
#include "cli/output.h"
#include "cli/tools.h"
#include "cli/values.h"

static int run(const char *model, const char *program, const char *output)
{
    onv_cli_sink sink;
    onv_error error = {0};
    if (!onv_cli_open(&sink, output)) return EXIT_UNUSABLE;
    onv_status status = onv_attach_program(model, program, NULL, onv_cli_write, &sink, &error);
    bool kept = onv_cli_close(&sink, status == ONV_OK);
    if (status != ONV_OK) return onv_cli_complain(model, &error);
    return kept ? EXIT_DONE : EXIT_UNUSABLE;
}

int onv_cli_attach(int argc, char **argv)
{
    static const struct option longs[] = {{"help", no_argument, NULL, 'h'}, {0}};
    const char *output = NULL;
    opterr = 0;
    optind = 1;
    for (int code; (code = getopt_long(argc, argv, ":o:h", longs, NULL)) != -1;) {
        switch (code) {
        case 'o': output = optarg; break;
        case 'h':
            puts("Usage: onnxvram attach MODEL.onnx PROGRAM -o OUT.onnx\n"
                 "\n"
                 "Writes the model with PyTorch's program inside: a .pt2 of torch.export.save(), "
                 "its\n"
                 "JSON, or a recording. ONNX Runtime ignores it; onnxvram OUT.onnx reads it. "
                 "Weights\n"
                 "are copied byte for byte; those in files of their own are found from the folder "
                 "of\n"
                 "OUT.onnx.");
            return onv_cli_answered();
        default: return onv_cli_wrong_option(argv, code, longs);
        }
    }
    if (optind + 2 != argc)
        return onv_cli_usage("attach takes a model and its program, not %d files, as in onnxvram "
                             "attach model.onnx model.pt2 -o out.onnx",
                             argc - optind);
    if (output == NULL)
        return onv_cli_usage("attach: no file to write; add -o OUT.onnx, or -o - for standard "
                             "output");
    return run(argv[optind], argv[optind + 1], output);
}
