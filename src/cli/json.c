#include "cli/json.h"

#include <onnxvram/onnxvram.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

json_t *onv_cli_json_of(const char *key, ...)
{
    json_t *object = json_object();
    bool has_all = true;
    va_list more;
    va_start(more, key);
    for (; key != NULL; key = va_arg(more, const char *))
        has_all &= json_object_set_new(object, key, va_arg(more, json_t *)) == 0;
    va_end(more);
    if (has_all) return object;
    json_decref(object);
    return NULL;
}

json_t *onv_cli_json_output(const char *key, json_t *part)
{
    return ONV_CLI_JSON("schema_version", json_integer(1), "generator",
                        json_sprintf("onnxvram %s", onv_version()), key, part);
}
