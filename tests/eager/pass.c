#include "eager/pass.h"

#include "graph/storage.h"
#include "lower/lower.h"
#include "support/test.h"

void pass_run(pass *p, model *m, const onv_lower_options *options)
{
    onv_error err = {0};
    onv_eager eager;
    bool *is_host;
    onv_lower_options how = options != NULL ? *options : (onv_lower_options){0};
    how.inference = true;
    p->m = m;
    flow_open_model(&p->f, m, NULL);
    assert_int_equal(onv_mark_host_values(&p->f.model, &p->f.live, &is_host, &err), ONV_OK);
    onv_status status = onv_eager_lower(&p->f.model, &p->f.live, is_host, &how, &eager, &err);
    if (status == ONV_OK) status = onv_eager_check(&eager, &err);
    if (status == ONV_OK)
        status = onv_inference_build(&p->f.model, &eager, &how, &p->t, NULL, &err);
    if (status == ONV_OK) status = onv_timeline_peak(&p->t, &p->peak, NULL, &err);
    p->differs_least = eager.differs_least;
    p->new_relus = (onv_timeline){0};
    onv_eager new_relus = {.first_loss_op = 0};
    if (status == ONV_OK && eager.inplace_relus.count > 0) {
        status = onv_eager_with_new_relus(&eager, &new_relus, &err);
        if (status == ONV_OK)
            status = onv_inference_build(&p->f.model, &new_relus, &how, &p->new_relus, NULL, &err);
        onv_eager_end_new_relus(&new_relus);
    }
    onv_eager_cleanup(&eager);
    if (status != ONV_OK) fail_msg("%s (%s)", err.message, err.node);
}

void pass_drop(pass *p)
{
    onv_timeline_cleanup(&p->t);
    onv_timeline_cleanup(&p->new_relus);
    flow_close(&p->f);
    model_free(p->m);
}

static bool ends_with(const char *path, const char *name)
{
    size_t length = strlen(path), n = strlen(name);
    return length == n
               ? strcmp(path, name) == 0
               : length > n && path[length - n - 1] == '/' && strcmp(path + length - n, name) == 0;
}

const onv_buffer *pass_find(const pass *p, const char *name)
{
    for (size_t i = 0; i < p->t.buffers.count; i++)
        if (onv_is_value(p->t.buffers.at[i].value) && ends_with(p->t.buffers.at[i].label, name))
            return &p->t.buffers.at[i];
    return NULL;
}
