#include "ckpt/layers.h"
#include "support/test.h"

static uint64_t elems(const layer *a)
{
    return a->height * a->width * a->channels;
}

static layer input_of(const layers *l, int in)
{
    return in == IMAGE ? (layer){.height = l->height, .width = l->width, .channels = 3} : l->at[in];
}

static int append(layers *l, layer a, uint64_t cost, int n_in, int first, int second)
{
    assert_true(l->count < MAX_LAYERS);
    a.cost = cost;
    a.n_in = n_in;
    a.in[0] = first;
    a.in[1] = second;
    l->at[l->count] = a;
    return l->count++;
}

static int after(layers *l, int in, layer out, uint64_t cost)
{
    return append(l, out, cost, 1, in, IMAGE);
}

/* The shape that a kernel leaves: of an input that was padded only where it fits. */
static layer window(layer x, uint64_t kernel, uint64_t stride, bool fits)
{
    uint64_t less = fits ? kernel : 1;
    return (layer){.height = (x.height - less) / stride + 1,
                   .width = (x.width - less) / stride + 1,
                   .channels = x.channels};
}

int layer_conv(layers *l, int in, uint64_t kernel, uint64_t channels, uint64_t stride, bool bias)
{
    layer x = input_of(l, in), y = window(x, kernel, stride, x.pads);
    y.channels = channels;
    l->parameters += kernel * kernel * x.channels * channels + (bias ? channels : 0);
    return after(l, in, y, kernel * kernel * x.channels * elems(&y));
}

int layer_depthwise(layers *l, int in, uint64_t kernel, uint64_t stride)
{
    layer x = input_of(l, in), y = window(x, kernel, stride, x.pads);
    l->parameters += kernel * kernel * x.channels;
    return after(l, in, y, kernel * kernel * elems(&y));
}

int layer_norm(layers *l, int in)
{
    layer x = input_of(l, in);
    l->parameters += 4 * x.channels;
    return after(l, in, x, 4 * elems(&x));
}

int layer_relu(layers *l, int in)
{
    layer x = input_of(l, in);
    return after(l, in, x, elems(&x));
}

int layer_add(layers *l, int a, int b)
{
    layer x = input_of(l, a);
    return append(l, x, 2 * elems(&x), 2, a, b);
}

int layer_concat(layers *l, int a, int b)
{
    layer x = input_of(l, a), y = input_of(l, b);
    x.channels += y.channels;
    return append(l, x, 0, 2, a, b);
}

int layer_pad(layers *l, int in, uint64_t height, uint64_t width)
{
    layer x = input_of(l, in);
    x.height += height;
    x.width += width;
    x.pads = true;
    return after(l, in, x, 0);
}

int layer_pool(layers *l, int in, uint64_t kernel, uint64_t stride)
{
    return after(l, in, window(input_of(l, in), kernel, stride, true), 0);
}

int layer_up(layers *l, int in)
{
    layer x = input_of(l, in);
    x.height *= 2;
    x.width *= 2;
    return after(l, in, x, 0);
}

int layer_dense(layers *l, int in, uint64_t channels)
{
    layer x = input_of(l, in);
    l->parameters += elems(&x) * channels + channels;
    return after(l, in, (layer){.height = 1, .width = 1, .channels = channels}, 0);
}

int layer_flatten(layers *l, int in)
{
    layer x = input_of(l, in);
    return after(l, in, (layer){.height = 1, .width = 1, .channels = elems(&x)}, 0);
}

int layer_same(layers *l, int in)
{
    return after(l, in, input_of(l, in), 0);
}

/* --- The chain --------------------------------------------------------------------------------- */

static uint64_t bytes_of(const layers *l, int i)
{
    return 4 * elems(&l->at[i]);
}

static bool reads(const layers *l, int reader, int i)
{
    return l->at[reader].in[0] == i || (l->at[reader].n_in > 1 && l->at[reader].in[1] == i);
}

/* The first layer that reads i; none: i itself, whose gradient is that of the loss. */
static int first_reader(const layers *l, int i)
{
    for (int r = i + 1; r < l->count; r++)
        if (reads(l, r, i)) return r;
    return i;
}

/* Layers from `at` on went backward: what their gradients still hold. `self` is not counted. */
static uint64_t waiting(const layers *l, int at, int self)
{
    uint64_t bytes = 0;
    for (int i = 0; i < l->count; i++) {
        bool made = first_reader(l, i) >= at, needed = false, late = false;
        for (int k = 0; k < l->at[i].n_in; k++) {
            int in = l->at[i].in[k];
            if (in == IMAGE || first_reader(l, in) >= at) continue;
            needed = true;  /* the gradient of `in` will be made of that of i */
            late = i >= at; /* and i, which went backward, waits for it */
        }
        if (made && needed) bytes += bytes_of(l, i);
        if (late && i != self) bytes += bytes_of(l, i);
    }
    return bytes;
}

/* The most that is there while layer i goes backward: gradients of its inputs are made one by one,
 * the latest first, those read first by an earlier layer not yet. */
static uint64_t backward_bytes(const layers *l, int i)
{
    uint64_t held = waiting(l, i + 1, i), most = 0, made = 0;
    if (i == l->count - 1) most = made = bytes_of(l, i); /* of the loss */
    for (int in = i - 1; in >= 0; in--) {
        if (!reads(l, i, in) || first_reader(l, in) != i) continue;
        made += bytes_of(l, in);
        most = made;
    }
    return held + most + bytes_of(l, i);
}

onv_chain layers_chain(layers *l)
{
    int n_readers = 0;
    for (int i = 0; i < l->count; i++) {
        l->units[i] = (onv_chain_unit){.cost = l->at[i].cost,
                                       .last_cost = l->at[i].cost,
                                       .forward_bytes = bytes_of(l, i),
                                       .last_bytes = bytes_of(l, i),
                                       .passing_bytes = bytes_of(l, i),
                                       .backward_bytes = backward_bytes(l, i)};
        l->tensors[i] = (onv_chain_tensor){.bytes = bytes_of(l, i),
                                           .maker = (uint32_t)i,
                                           .saved_by_maker = true,
                                           .readers = &l->readers[n_readers]};
        for (int r = i + 1; r < l->count; r++)
            if (reads(l, r, i)) l->readers[n_readers++] = (onv_chain_reader){(uint32_t)r, true};
        l->tensors[i].n_readers = (uint32_t)(&l->readers[n_readers] - l->tensors[i].readers);
    }
    for (int i = 0; i <= l->count; i++) l->turn_bytes[i] = waiting(l, i, -1);
    l->turn_bytes[l->count] = 0;
    uint64_t once = 0;
    for (int i = 0; i < l->count; i++) once += l->at[i].cost;
    return (onv_chain){.units = l->units,
                       .n_units = (uint32_t)l->count,
                       .tensors = l->tensors,
                       .n_tensors = (uint32_t)l->count,
                       .turn_bytes = l->turn_bytes,
                       .max_extra_cost = once};
}

uint64_t layers_bound(const layers *l)
{
    uint64_t most = 0;
    for (int i = 0; i < l->count; i++) {
        uint64_t bytes = 2 * bytes_of(l, i);
        for (int r = i + 1; r < l->count; r++)
            if (reads(l, r, i)) bytes += 2 * bytes_of(l, r);
        if (bytes > most) most = bytes;
    }
    return most;
}
