/* Names of parameters and modules, and the patterns of options that they match. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "emit/patterns.h"
#include "ir/origin.h"
#include "lower/lowering.h"

const char *onv_parameter_name(onv_emitter *e, const char *module, const char *name)
{
    size_t length = strlen(module) + 1 + strlen(name) + 1;
    char *path = onv_arena_alloc(&e->model->arena, length);
    if (path == NULL) {
        onv_emit_fail_memory(e);
        return name;
    }
    snprintf(path, length, "%s%s%s", module, module[0] != '\0' ? "." : "", name);
    return path;
}

/* Modules of libraries that build the activation in them with inplace=True unless they are told otherwise. */
static bool is_built_in_place(const onv_node *node)
{
    static const char *const around[] = {"timm.layers.norm_act.",
                                         "torchvision.ops.misc.Conv2dNormActivation",
                                         "torchvision.ops.misc.Conv3dNormActivation"};
    static const char *const activations[] = {"torch.nn.modules.activation.",
                                              "timm.layers.activations.Swish"};
    for (size_t i = 0; i < sizeof activations / sizeof activations[0]; i++) {
        const char *classes = onv_noted(node)->call_classes;
        const char *last = strstr(classes, activations[i]);
        if (last == NULL || strstr(last + 1, activations[i]) != NULL) continue;
        for (size_t k = 0; k < sizeof around / sizeof around[0]; k++) {
            const char *found = strstr(classes, around[k]);
            /* Nothing is between the two: "', '". */
            if (found != NULL && found < last && strchr(found, '\'') == last - 4) return true;
        }
    }
    return false;
}

bool onv_is_inplace(onv_lowering *l, const onv_node *node, bool all)
{
    const onv_lower_options *o = l->emit.options;
    bool any = false;
    char path[1024] = "";
    if (o->n_inplace == 0) {
        bool is_built = all && is_built_in_place(node);
        l->emit.eager->differs_least |= all && !is_built; /* there all overwrite: "*" */
        if (is_built && !o->inference) onv_say(&l->emit, ONV_SAID_built_in_place, NULL, 0, NULL);
        return is_built;
    }
    onv_origin origin = onv_node_origin(l->emit.model, node);
    if (origin.path != NULL && origin.length < sizeof path) {
        size_t n = 0; /* "/layer1/conv1" is "layer1.conv1" */
        for (size_t i = 0; i < origin.length; i++)
            if (origin.path[i] != '/' || n > 0)
                path[n++] = (char)(origin.path[i] == '/' ? '.' : origin.path[i]);
        path[n] = '\0';
    }
    for (size_t i = 0; i < o->n_inplace; i++) {
        bool every = strcmp(o->inplace[i], "*") == 0, none = strcmp(o->inplace[i], "none") == 0;
        bool match = every ? all : !none && onv_pattern_matches(o->inplace[i], path);
        l->weights.inplace_used[i] |= match || every;
        any |= match;
    }
    return any;
}

/* A pattern without a match is a mistake that would pass for an answer. */
void onv_check_patterns(onv_lowering *l)
{
    const onv_lower_options *o = l->emit.options;
    for (size_t i = 0; i < o->n_inplace && l->emit.status == ONV_OK; i++)
        if (!l->weights.inplace_used[i] && strcmp(o->inplace[i], "*") != 0 &&
            strcmp(o->inplace[i], "none") != 0)
            l->emit.status =
                onv_fail(l->emit.err, ONV_ERR_USAGE,
                         "--inplace '%.200s' matches no module with an activation that can "
                         "work in place",
                         o->inplace[i]);
    onv_check_frozen(&l->emit);
}
