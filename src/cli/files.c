#include "cli/files.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/output.h"

bool onv_cli_each_input(const onv_cli *cli, size_t first, size_t count,
                        bool (*each)(void *context, const char *file), void *context)
{
    const char *const others[] = {
        cli->analysis.op_shapes_file, cli->analysis.shape_trace, cli->baseline,
        cli->analysis.program,        cli->analysis.snapshot,    cli->analysis.plan};
    for (size_t i = first; i < first + count; i++)
        if (!onv_cli_is_input(cli->models[i]) && !each(context, cli->models[i])) return false;
    for (size_t i = 0; i < cli->analysis.n_input_values; i++)
        if (cli->input_values[i].file != NULL && !each(context, cli->input_values[i].file))
            return false;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i] != NULL && !each(context, others[i])) return false;
    return true;
}

/* --- Which file a name is ---------------------------------------------------------------------- */

/* A file that is not there yet is its name in its folder. */
typedef struct place {
    dev_t device;
    ino_t node;
    const char *name; /* NULL: the file is there */
} place;

/* The folder of a file. One that does not exist is an error when the file is opened. */
static bool stat_folder(const char *path, struct stat *status)
{
    char folder[PATH_MAX];
    return onv_cli_folder_of(path, folder) && stat(folder, status) == 0;
}

/* False: it is not a file that could be overwritten by mistake, but a device or a pipe, or cannot be found. */
static bool find_place(const char *file, place *found)
{
    struct stat status;
    bool is_there =
        strcmp(file, "-") == 0 ? fstat(STDOUT_FILENO, &status) == 0 : stat(file, &status) == 0;
    *found = (place){0};
    if (is_there) {
        found->device = status.st_dev;
        found->node = status.st_ino;
        return S_ISREG(status.st_mode);
    }
    const char *name = strrchr(file, '/');
    is_there = stat_folder(file, &status);
    if (is_there) *found = (place){status.st_dev, status.st_ino, name != NULL ? name + 1 : file};
    return is_there;
}

static bool is_same(const place *a, const place *b)
{
    bool same_name =
        a->name == NULL || b->name == NULL ? a->name == b->name : strcmp(a->name, b->name) == 0;
    return same_name && a->device == b->device && a->node == b->node;
}

/* --- Checks ------------------------------------------------------------------------------------ */

static bool refuse(const char *output, const char *input)
{
    onv_cli_usage("'%s' would overwrite '%s', which is the same file and is read: give the output "
                  "another name",
                  onv_cli_output_name(output), input);
    return false;
}

bool onv_cli_spares_input(const char *output, const char *input)
{
    place to, from;
    if (!find_place(output, &to) || onv_cli_is_input(input) || !find_place(input, &from))
        return true;
    return !is_same(&to, &from) || refuse(output, input);
}

static bool spares_input(void *context, const char *input)
{
    const char *const *output = context;
    return onv_cli_spares_input(*output, input);
}

bool onv_cli_spares_inputs(const onv_cli *cli)
{
    place first, second;
    for (size_t i = 0; i < cli->n_outputs; i++) {
        const char *file = cli->outputs[i].file;
        if (!onv_cli_each_input(cli, 0, cli->n_models, spares_input, &file)) return false;
        for (size_t k = 0; k < i && find_place(file, &first); k++) {
            if (!find_place(cli->outputs[k].file, &second) || !is_same(&first, &second)) continue;
            onv_cli_usage("two outputs go to the same file, '%s' and '%s': give each a name of its "
                          "own",
                          onv_cli_output_name(cli->outputs[k].file), onv_cli_output_name(file));
            return false;
        }
    }
    return true;
}

bool onv_cli_spares_weights(const onv_analysis *analysis, const char *output)
{
    place to;
    const char *input = NULL;
    if (find_place(output, &to) && to.name == NULL)
        input = onv_analysis_external_at(analysis, (uint64_t)to.device, (uint64_t)to.node);
    return input == NULL || refuse(output, input);
}

/* --- Beside weights ------------------------------------------------------------------------------- */

bool onv_cli_is_beside_weights(const onv_analysis *analysis, const char *model, const char *file)
{
    const char *weights = onv_analysis_external_file(analysis), *name = strrchr(file, '/');
    struct stat from, to;
    if (weights == NULL || strcmp(file, "-") == 0 || onv_cli_is_special(file) ||
        !stat_folder(model, &from) || !stat_folder(file, &to) ||
        (from.st_dev == to.st_dev && from.st_ino == to.st_ino))
        return true;
    const char *end = strrchr(model, '/'), *base = name != NULL ? name + 1 : file;
    int folder = end != NULL ? (int)(end - model + 1) : 0;
    onv_cli_usage(
        "--onnx-out %s: the weights in '%s' are found from the model's own folder; write the "
        "file there, as in --onnx-out %.*s%s%s",
        file, weights, folder, model, strcmp(model + folder, base) == 0 ? "new-" : "", base);
    return false;
}
