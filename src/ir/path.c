#include "ir/path.h"

#include <string.h>

bool onv_path_is_inside(const char *path, const char *module)
{
    size_t length = strlen(module);
    if (path == NULL || length == 0) return path != NULL && path[0] != '\0';
    return strncmp(path, module, length) == 0 && path[length] == '.';
}
