/* Objects of jansson from what they hold: json_pack alone would be 11 KB of the program. */
#ifndef ONV_CLI_JSON_H
#define ONV_CLI_JSON_H

#include <jansson.h>

/* Keys, each with its value, which becomes the object's. NULL: there is no memory. */
#define ONV_CLI_JSON(...) onv_cli_json_of(__VA_ARGS__, (const char *)NULL)
json_t *onv_cli_json_of(const char *key, ...) __attribute__((sentinel));

/* The whole of an output: its version, the program's, and `part` by that key. */
json_t *onv_cli_json_output(const char *key, json_t *part);

#endif
