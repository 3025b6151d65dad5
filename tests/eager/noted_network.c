#include "eager/noted_network.h"

#include <stdio.h>
#include <string.h>

model *network_model(const network *n)
{
    model *m = model_read(18, "in x f32[4,8]", "in image f32[1,8,6,6]");
    char text[512], *at = text;
    strcpy(text, n->weights); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): short ones */
    for (char *name = strtok_r(text, " ", &at); name != NULL; name = strtok_r(NULL, " ", &at))
        model_weight(m, name, strtok_r(NULL, " ", &at));
    if (n->listed != NULL) model_parameters(m, n->listed);
    for (size_t i = 0; i < MAX_NODES && n->calls[i].op != NULL; i++) {
        const call *c = &n->calls[i];
        if (c->module != NULL) {
            model_source(m, c->module, c->call);
            model_class(m, c->class, c->aten);
        }
        model_node(m, c->op, c->output, c->inputs, c->output, c->attributes);
    }
    model_output(m, "y", "f32");
    return m;
}

outcome run_with(const network *n, uint64_t parameters)
{
    outcome o = {0};
    trainer t;
    model *m = network_model(n);
    o.figures = TRAINED(&t, m, .loss = ONV_LOSS_NONE, .reports = true, .parameters = parameters);
    for (size_t i = 0; i < t.model.diags.count; i++) {
        if (strcmp(t.model.diags.at[i].code, "computed-factors") == 0)
            snprintf(o.factors, sizeof o.factors, "%s", t.model.diags.at[i].message);
        if (strcmp(t.model.diags.at[i].code, "missing-parameters") == 0 ||
            strcmp(t.model.diags.at[i].code, "parameter-count") == 0 ||
            strcmp(t.model.diags.at[i].code, "expanded-parameters") == 0)
            snprintf(o.text, sizeof o.text, "%s", t.model.diags.at[i].message);
    }
    trainer_close(&t);
    model_free(m);
    return o;
}

outcome run(const network *n)
{
    return run_with(n, 0);
}

void add_call(model *m, const char *op, const char *inputs, const char *output, const char *name)
{
    model_source(m, "net", name);
    model_class(m, "zoo.Net", "aten.op.default");
    model_node(m, op, output, inputs, output, "");
}
