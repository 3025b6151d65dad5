/* Dotted paths: "layer1.0.conv1", a module, and "layer1.0.conv1.weight", what it has. */
#ifndef ONV_IR_PATH_H
#define ONV_IR_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Is the path the module, of whose path these are the first `length` bytes, or inside of it? Everything is inside of
 * "", the network. A path may be NULL: of no module. */
bool onv_path_is_part(const char *path, const char *module, size_t length);
/* Likewise, but not the module itself. */
bool onv_path_is_inside(const char *path, const char *module);

#endif
