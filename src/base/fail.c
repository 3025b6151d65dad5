#include "base/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "onnxvram/common.h"

onv_status(onv_fail)(onv_error *err, onv_status code, const char *format, ...)
{
    if (err == NULL || err->code != ONV_OK) return code;
    err->code = code;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

onv_status(onv_fail_memory)(onv_error *err)
{
    return onv_fail(err, ONV_ERR_MEMORY, "out of memory");
}

void onv_error_at(onv_error *err, const char *node_name, const char *op_type)
{
    if (err == NULL || err->code == ONV_OK || err->op_type[0] != '\0') return;
    snprintf(err->node, sizeof err->node, "%s", node_name != NULL ? node_name : "");
    snprintf(err->op_type, sizeof err->op_type, "%s", op_type != NULL ? op_type : "");
}

const char *onv_status_name(onv_status status)
{
    static const char *const names[] = {
        [ONV_OK] = "ok",
        [ONV_ERR_MEMORY] = "out of memory",
        [ONV_ERR_IO] = "input/output error",
        [ONV_ERR_FORMAT] = "not a valid ONNX file",
        [ONV_ERR_MODEL] = "invalid model",
        [ONV_ERR_LIMIT] = "limit exceeded",
        [ONV_ERR_OVERFLOW] = "arithmetic overflow",
        [ONV_ERR_USAGE] = "wrong usage",
        [ONV_ERR_DEVICE] = "device error",
        [ONV_ERR_CANCELLED] = "cancelled",
    };
    if ((size_t)status >= sizeof names / sizeof names[0]) return "unknown status";
    return names[status];
}
