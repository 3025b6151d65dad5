/* Dotted paths: "layer1.0.conv1", a module, and "layer1.0.conv1.weight", what it has. */
#ifndef ONV_IR_PATH_H
#define ONV_IR_PATH_H

#include <stdbool.h>

/* Is the path inside of the module, and not the module itself? All but "" is inside of "", the network. A path may be NULL: of
 * no module. */
bool onv_path_is_inside(const char *path, const char *module);

#endif
