/* --help: every option of the table, and the names that values are chosen from. */
#include <string.h>

#include "cli/table.h"

/* What a function of the library names, one a line. */
static void list_names(FILE *to, const char *title, onv_names list)
{
    const char *name, *summary;
    fprintf(to, "\n%s\n", title);
    for (size_t i = 0; (name = onv_name_at(list, i, &summary)) != NULL; i++)
        fprintf(to, "  %-10s %s\n", name, summary);
}

static void print_row(FILE *to, const onv_cli_row *row)
{
    char left[48];
    if (row->heading != NULL) fprintf(to, "\n%s:\n", row->heading);
    const char *arg = row->arg != NULL ? row->arg : "";
    const char *gap = onv_cli_takes_value(row) ? " " : "";
    if (row->letter != 0)
        snprintf(left, sizeof left, "-%c, --%s%s%s", row->letter, row->name, gap, arg);
    else
        snprintf(left, sizeof left, "    --%s%s%s", row->name, gap, arg);
    /* What does not fit its column gets a line of its own. */
    if (strlen(left) > 30)
        fprintf(to, "  %s\n  %-30s  %s\n", left, "", row->help);
    else
        fprintf(to, "  %-30s  %s\n", left, row->help);
}

void onv_cli_help(FILE *to)
{
    fputs("Usage: onnxvram [OPTION...] MODEL.onnx [MODEL.onnx...]\n"
          "       onnxvram diff [OPTION...] OLD.onnx NEW.onnx\n"
          "       onnxvram compare [OPTION...] MODEL.onnx --snapshot FILE | --measured SIZE\n"
          "       onnxvram verify [OPTION...] MODEL.onnx\n"
          "       onnxvram hf [OPTION...] ID_OR_FOLDER\n"
          "       onnxvram plan INTERVALS.csv [--capacity BYTES] [--align N] [-o OUT.csv]\n"
          "       onnxvram simulate TRACE.csv --runtime NAME\n"
          "       onnxvram attach MODEL.onnx PROGRAM -o OUT.onnx\n"
          "A model, intervals or a trace from standard input: -\n"
          "\n"
          "Says how much GPU memory an exported ONNX model needs, and why.\n",
          to);
    for (size_t i = 0; i < onv_cli_n_rows; i++) print_row(to, &onv_cli_rows[i]);
    const char *summary;
    list_names(to, "Orders:", ONV_NAMES_ORDERS);
    list_names(to, "Runtimes (all, if no list is given; torch and ort are judged then):",
               ONV_NAMES_RUNTIMES);
    list_names(to, "Devices of --replay:", ONV_NAMES_REPLAY_DEVICES);
    const char *values;
    fputs("\nSettings of ONNX Runtime:\n", to);
    for (size_t i = 0; onv_name_at(ONV_NAMES_ORT_SETTINGS, i, &values) != NULL; i++)
        fprintf(to, "  %s=\n             %s\n", onv_name_at(ONV_NAMES_ORT_SETTINGS, i, NULL),
                values);
    uint64_t fallback;
    fputs("\nLimits:\n", to);
    for (size_t i = 0; onv_limit_name(i, &summary, &fallback) != NULL; i++)
        fprintf(to, "  %-14s %s (%llu)\n", onv_limit_name(i, NULL, NULL), summary,
                (unsigned long long)fallback);
    list_names(to, "Optimizers:", ONV_NAMES_OPTIMIZERS);
    fputs("\nReleases of PyTorch (default: the first):\n ", to);
    for (size_t i = 0; onv_name_at(ONV_NAMES_PYTORCH, i, NULL) != NULL; i++)
        fprintf(to, " %s", onv_name_at(ONV_NAMES_PYTORCH, i, NULL));
    fputs("\n", to);
    list_names(to, "Formats of --weights:", ONV_NAMES_WEIGHT_FORMATS);
    bool counts;
    fputs("\nCheckpointing plans (a comma-separated list, or all):\n", to);
    for (size_t i = 0; onv_checkpoint_name(i, &summary, &counts) != NULL; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", onv_checkpoint_name(i, NULL, NULL), counts ? "=K" : "");
        fprintf(to, "  %-10s %s\n", name, summary);
    }
    fputs("\n"
          "Exit status: 0 done, 1 a model or file could not be used, 2 wrong usage,\n"
          "3 does not fit the budget or the device, 4 a replay or a measurement contradicts\n"
          "the prediction, 5 there are warnings (with --strict, where the status would be 0).\n",
          to);
}
