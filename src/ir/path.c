#include "ir/path.h"

#include <string.h>

bool onv_path_is_part(const char *path, const char *module, size_t length)
{
    return path != NULL && (length == 0 || (strncmp(path, module, length) == 0 &&
                                            (path[length] == '.' || path[length] == '\0')));
}

bool onv_path_is_inside(const char *path, const char *module)
{
    size_t length = strlen(module);
    return onv_path_is_part(path, module, length) && path[length] != '\0';
}
