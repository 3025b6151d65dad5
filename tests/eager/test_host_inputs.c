/* Every operator with inputs that have no memory on the device: absent ones, shapes and scalars that stay on the host.
 * Exporters write few of these, files from elsewhere may have any. What inference refuses is left out; eager
 * PyTorch and training then have to give figures or a message. */
#include "ops/op.h"
#include "support/onnx_writer.h"
#include "support/test.h"

/* Names: x on the device, s a shape, h a scalar on the host, "-" nothing; a cycle of them fills an operator's inputs. */
static const char *const cycles[] = {"s",     "s x",   "- x",   "h x",     "h",     "x s",
                                     "x h",   "s h x", "s s x", "x - s x", "- - x", "h h x x",
                                     "s i x", "i x",   "i i x", "x i",     "x i s", "i s x"};

static model *with_node(const onv_op *op, const char *domain, const char *cycle, int n_in,
                        bool is_declared)
{
    char inputs[128] = "", outputs[64] = "", type[64];
    const char *at = cycle;
    size_t used = 0;
    for (int i = 0; i < n_in; i++) {
        if (*at == '\0') at = cycle;
        used += (size_t)snprintf(inputs + used, sizeof inputs - used, "%.*s ",
                                 (int)strcspn(at, " "), at);
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    used = 0;
    int n_out = op->out.min > 0 ? op->out.min : 1;
    for (int i = 0; i < n_out; i++)
        used += (size_t)snprintf(outputs + used, sizeof outputs - used, "y%d ", i);
    model *m = model_new(21);
    if (domain[0] != '\0') model_import(m, domain, op->since);
    model_add(m, "in x f32[2,3]", "in i i64[3]", "s = Shape(x) shape", "int h 1");
    snprintf(type, sizeof type, "%s%s%s", domain, domain[0] != '\0' ? "::" : "", op->name);
    model_node(m, type, "node", inputs, outputs, "");
    for (int i = 0; i < n_out; i++) {
        char name[16];
        snprintf(name, sizeof name, "y%d", i);
        if (is_declared) model_value_info(m, name, "f32[2,3]");
        model_output(m, name, "f32");
    }
    return m;
}

static bool is_analysed(const onv_op *op, const char *domain, const char *cycle, int n_in,
                        bool is_declared, const char *train)
{
    model *m = with_node(op, domain, cycle, n_in, is_declared);
    onv_options options = onv_options_default();
    onv_analysis *a;
    onv_error error = {0};
    options.train = train;
    onv_status status = model_try(m, &options, &a, &error);
    if (status == ONV_OK)
        onv_analysis_destroy(a);
    else
        assert_true(error.message[0] != '\0');
    model_free(m);
    return status == ONV_OK;
}

TEST(operators_take_inputs_on_the_host)
{
    unsigned n_analysed = 0;
    for (size_t f = 0; f < onv_n_op_families; f++) {
        const onv_op_family *family = onv_op_families[f];
        for (size_t r = 0; r < family->n_rows; r++) {
            const onv_op *op = &family->rows[r];
            int most = op->in.max < 4 ? op->in.max : 4;
            for (int n_in = op->in.min; n_in <= most; n_in++)
                for (size_t c = 0; c < sizeof cycles / sizeof cycles[0]; c++)
                    n_analysed += is_analysed(op, family->domain, cycles[c], n_in, c % 2 == 0,
                                              c % 3 == 0 ? "adam" : NULL);
        }
    }
    assert_true(n_analysed > 1000); /* of those that inference takes */
}
