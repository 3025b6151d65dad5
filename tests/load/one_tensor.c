

#include "load/one_tensor.h"
#include "support/test.h"

one_tensor one_tensor_model(msg *tensor)
{
    one_tensor o = {0};
    msg *graph = m_graph("", "");
    m_put(graph, G_INIT, tensor);
    o.file = m_model(graph);
    return o;
}

void one_tensor_read(one_tensor *o)
{
    if (m_load(o->file, &o->model, &o->err) != ONV_OK) fail_msg("%s", o->err.message);
    o->status = onv_load_known(&o->model, o->model.values.at[0].tensor, &o->known, &o->err);
}

void one_tensor_done(one_tensor *o)
{
    onv_model_cleanup(&o->model);
    m_free(o->file);
}

double number(const onv_known *known, uint32_t i)
{
    return onv_dtype_is_float(known->dtype) ? known->elems[i].f : (double)known->elems[i].i.raw;
}

msg *tensor_of(onv_dtype dtype, int64_t elems)
{
    return m_tensor("t", dtype, 1, &elems);
}

void tensor_refuse(msg *tensor, onv_status status, const char *text)
{
    one_tensor o = one_tensor_model(tensor);
    assert_int_equal(m_load(o.file, &o.model, &o.err), status);
    if (strstr(o.err.message, text) == NULL) fail_msg("%s", o.err.message);
    m_free(o.file);
}
