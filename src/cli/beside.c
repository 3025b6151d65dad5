#include "cli/beside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/message.h"
#include "cli/output.h"

/* Folders that are not there are told when the file is opened. */
static bool stat_folder(const char *path, struct stat *status)
{
    char *copy = strdup(path);
    if (copy == NULL) return false;
    char *slash = strrchr(copy, '/');
    if (slash != NULL) slash[slash == copy ? 1 : 0] = '\0';
    bool found = stat(slash != NULL ? copy : ".", status) == 0;
    free(copy);
    return found;
}

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
