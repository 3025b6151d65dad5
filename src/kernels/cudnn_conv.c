/* Workspaces of convolutions as PyTorch asks for them: the first engine that cuDNN's heuristics name.
 *
 * What an engine takes has a closed form: kernels on tensor cores want NHWC, with channels in multiples of 16 bytes, so
 * NCHW tensors are copied into the workspace; partial sums of a split reduction stand behind them; a Winograd transform
 * takes 36 values for each 4 x 4 outputs, an FFT its spectra. Which engine is chosen is known to cuDNN alone, so
 * conv_trees.h has decision trees for that, fitted to what cuDNN 9.26 answered (docs/workspaces.md). */

#include "base/checked.h"
#include "kernels/conv_trees.h"
#include "kernels/cudnn.h"

enum { ARCH_90, ARCH_80, ARCH_86, ARCH_89 };
enum {
    MODE_TF32,
    MODE_IEEE,
    MODE_NHWC,
    MODE_HALF,
    MODE_HALF_NHWC,
    MODE_B_TF32,
    MODE_B_IEEE,
    MODE_B_HALF,
    MODE_MOST,
    MODE_OLD_IEEE, /* of cuDNN 8 */
    CONV_MODES
};

/* What a workspace consists of, without its tail. The first ones are sums of x, y and w (`sums` below), and the same with
 * channels in multiples of 16 bytes. */
typedef enum conv_base {
    BASE_NONE,
    BASE_X_Y_W,
    BASE_X = 5,
    BASE_Y,
    BASE_W,
    BASE_PAD_X_Y_W,
    BASE_PAD_W = 14,
    BASE_BATCH_W,
    BASE_X_X,
    BASE_Y_Y,
    BASE_WINOGRAD,
    BASE_FFT,
    BASE_BATCH_W_W,
    BASE_WINOGRAD_W,
    BASE_EIGHT_X_Y, /* of eight groups at a time */
    BASE_EIGHT_X_Y_W,
    BASE_POWER_X_Y_W,       /* a group's channels, in and out, in the same power of two */
    BASE_TABLE,             /* where an output's values come from */
    BASE_WINOGRAD_SIXTEENS, /* of images in multiples of 16 */
    BASE_TILES_FFT,         /* of 32 x 32 at a time */
    BASE_FLOAT_X_Y_W,
    BASE_EIGHT_PAD_X_Y_W,
    BASE_EVEN_X_Y_W,   /* groups in even numbers */
    BASE_PACKED_X_Y_W, /* 64 channels of several groups at a time */
    BASE_PACKED_X_Y,
} conv_base;

enum { GROUPS_AT_ONCE = 8 };

/* A convolution as cuDNN sees it: a transposed one is another's data gradient. */
typedef struct conv {
    onv_conv_pass pass;
    uint32_t rank;
    uint64_t n, c, k, groups; /* channels of a group */
    uint64_t in, out, kernel, stride;
    uint64_t pixels, filters, taps; /* that are made, of all groups; that each is a sum of */
    const int64_t *in_dims, *out_dims;
    const onv_conv_problem *problem;
    uint64_t elem;
} conv;

static uint64_t mul3(uint64_t a, uint64_t b, uint64_t c)
{
    return onv_u64_times(onv_u64_times(a, b), c);
}

static uint64_t product(const int64_t *dims, uint32_t rank)
{
    uint64_t elems = 1;
    for (uint32_t i = 0; i < rank; i++) elems = onv_u64_times(elems, (uint64_t)dims[i]);
    return elems;
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

static bool is_half(onv_dtype dtype)
{
    return dtype == ONV_FLOAT16 || dtype == ONV_BFLOAT16;
}

static bool is_positive(const onv_conv_problem *p)
{
    if (p->spatial_rank < 1 || p->spatial_rank > 3) return false;
    bool positive = p->batch > 0 && p->groups > 0 && p->in_channels >= p->groups &&
                    p->out_channels >= p->groups;
    for (uint32_t i = 0; i < p->spatial_rank; i++)
        positive = positive && p->in[i] > 0 && p->out[i] > 0 && p->kernel[i] > 0 &&
                   p->stride[i] > 0 && p->dilation[i] > 0 && p->pad_begin[i] >= 0;
    return positive;
}

static conv conv_of(const onv_conv_problem *p, onv_conv_pass pass)
{
    conv c = {.pass = pass,
              .rank = p->spatial_rank,
              .problem = p,
              .n = (uint64_t)p->batch,
              .groups = (uint64_t)p->groups};
    uint64_t in = (uint64_t)p->in_channels, out = (uint64_t)p->out_channels;
    c.in_dims = p->transposed ? p->out : p->in;
    c.out_dims = p->transposed ? p->in : p->out;
    c.c = (p->transposed ? out : in) / c.groups;
    c.k = (p->transposed ? in : out) / c.groups;
    if (p->transposed && pass != ONV_CONV_BACKWARD_WEIGHT)
        c.pass = pass == ONV_CONV_FORWARD ? ONV_CONV_BACKWARD_DATA : ONV_CONV_FORWARD;
    c.in = product(c.in_dims, c.rank);
    c.out = product(c.out_dims, c.rank);
    c.kernel = product(p->kernel, c.rank);
    c.stride = product(p->stride, c.rank);
    c.pixels = onv_u64_times(c.n, c.out);
    c.filters = onv_u64_times(c.k, c.groups);
    c.taps = onv_u64_times(c.c, c.kernel);
    c.elem = is_half(p->dtype) ? 2 : 4;
    return c;
}

bool onv_conv_needed_pad(const onv_conv_problem *p, uint32_t i, int64_t *needed)
{
    int64_t places = p->transposed ? p->in[i] : p->out[i];
    int64_t covered = p->transposed ? p->out[i] : p->in[i];
    int64_t reach, steps;
    if (p->kernel[i] < 1 || p->stride[i] < 1 || p->dilation[i] < 1 ||
        !onv_i64_mul(p->kernel[i] - 1, p->dilation[i], &reach) ||
        !onv_i64_mul(places - 1, p->stride[i], &steps) || !onv_i64_add(reach, steps, &reach) ||
        !onv_i64_add(reach, 1, &reach))
        return false;
    *needed = reach > covered ? reach - covered : 0;
    return true;
}

bool onv_is_native_depthwise(const onv_conv_problem *p, const onv_cuda_library_settings *settings)
{
    if (settings->pytorch == 0 || p->transposed || p->groups == 1 || p->groups != p->in_channels)
        return false;
    if (p->out_channels % p->in_channels != 0) return false;
    if (settings->channels_last && p->spatial_rank == 2) return false;
    if (p->dtype != ONV_FLOAT16 || p->spatial_rank == 3 || p->in_channels < 32) return true;
    bool line = p->spatial_rank == 1;
    int64_t stride = p->stride[p->spatial_rank - 1], kernel = p->kernel[p->spatial_rank - 1];
    int64_t width = p->in[p->spatial_rank - 1], channels = p->in_channels;
    for (uint32_t i = 0; i < p->spatial_rank; i++)
        if (p->dilation[i] != 1) return true;
    if ((line || p->in[0] == 1) && stride == 1) return false;
    if (line || p->stride[0] != p->stride[1] || p->kernel[0] != p->kernel[1]) return true;
    if ((kernel != 1 && kernel != 3 && kernel != 5) || width < 7) return true;
    if (stride == 1) return false;
    if (stride != 2) return true;
    if (kernel == 1)
        return p->batch == 1 ? width > 28 : p->batch > 16 || channels < 128 || width > 7;
    return p->batch != 1 && channels < 512 && (channels < 256 || width < 28);
}

/* Kernels without tensor cores take groups in turn. */
static uint64_t groups_at_once(const conv *c)
{
    return c->groups < GROUPS_AT_ONCE ? c->groups : GROUPS_AT_ONCE;
}

/* Complex spectra of F x (F / 2 + 1) for two tensors at a time, and a copy of what is transformed last. */
static uint64_t fft_bytes(const conv *c, uint64_t x, uint64_t y, uint64_t w)
{
    if (c->rank != 2) return 0;
    uint64_t side = 16, need = 0;
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t padded = onv_u64_plus((uint64_t)c->in_dims[i],
                                       onv_u64_times(2, (uint64_t)c->problem->pad_begin[i]));
        if (padded > need) need = padded;
    }
    if (need > UINT32_MAX) return UINT64_MAX;
    while (side < need) side *= 2;
    uint64_t spectrum = onv_u64_times(16 * side, side / 2 + 1);
    /* What each pass makes: the others are read. */
    uint64_t sizes[] = {onv_u64_times(c->n, c->k), onv_u64_times(c->n, c->c),
                        onv_u64_times(c->c, c->k)},
             made = sizes[c->pass];
    uint64_t read = onv_u64_plus(sizes[(c->pass + 1) % 3], sizes[(c->pass + 2) % 3]);
    uint64_t one = c->pass == ONV_CONV_BACKWARD_WEIGHT ? y : w;
    uint64_t copies = c->groups > GROUPS_AT_ONCE ? onv_u64_plus(w, onv_u64_plus(x, y)) : one;
    uint64_t group =
        onv_u64_plus(copies / c->groups, onv_u64_times(spectrum, made > read ? made : read));
    return onv_u64_times(groups_at_once(c), group);
}

/* As fft_bytes, for tiles of 32 x 32: those of an image follow each other. */
static uint64_t tiles_fft_bytes(const conv *c, uint64_t copies)
{
    enum { SPECTRUM = 8 * 32 * 17 };
    uint64_t images = mul3(2, c->n, onv_u64_plus(c->c, c->k));
    uint64_t group = onv_u64_times(SPECTRUM, onv_u64_plus(images, onv_u64_times(c->c, c->k)));
    return onv_u64_plus(onv_u64_times(groups_at_once(c), group), c->groups > 1 ? copies : 0);
}

/* F(4 x 4, 3 x 3): 36 values for each tile of 4 x 4 outputs. */
static uint64_t winograd_bytes(const conv *c, uint64_t images)
{
    if (c->rank != 2) return 0;
    const int64_t *made = c->pass == ONV_CONV_BACKWARD_DATA ? c->in_dims : c->out_dims;
    uint64_t tiles = mul3(images, ceil_div((uint64_t)made[0], 4), ceil_div((uint64_t)made[1], 4));
    uint64_t values =
        onv_u64_plus(onv_u64_times(tiles, onv_u64_plus(c->c, c->k)), onv_u64_times(c->c, c->k));
    return mul3(UINT64_C(36) * 4, values, groups_at_once(c));
}

/* Copies of so many groups with so many channels in and out. */
static uint64_t copies_of(const conv *c, uint64_t groups, uint64_t in, uint64_t out, bool weights)
{
    uint64_t images =
        onv_u64_times(c->n, onv_u64_plus(onv_u64_times(in, c->in), onv_u64_times(out, c->out)));
    uint64_t group = weights ? mul3(in, out, c->kernel) : 0;
    return mul3(groups, onv_u64_plus(images, group), c->elem);
}

static uint64_t power_of(const conv *c)
{
    uint64_t channels = c->c > c->k ? c->c : c->k, power = 1;
    while (power < channels && power < UINT64_C(1) << 62) power *= 2;
    return power;
}

/* How many groups with so many channels each kernels take together that want 64 of them. */
static uint64_t packed_groups(const conv *c, uint64_t *channels)
{
    uint64_t power = power_of(c);
    *channels = power > 4 ? power : 4;
    return *channels < 64 ? 64 / *channels : 1;
}

static uint64_t base_bytes(const conv *c, conv_base base)
{
    enum { X = 1, Y = 2, W = 4 };
    static const uint8_t sums[] = {0, X | Y | W, X | W, Y | W, X | Y, X, Y, W};
    if (base == BASE_NONE) return 0;
    uint64_t quantum = 16 / c->elem, power = base == BASE_POWER_X_Y_W ? power_of(c) : 0;
    uint64_t at_once = groups_at_once(c);
    uint64_t wide = onv_u64_times(ceil_div(c->c, quantum), quantum);
    uint64_t tall = onv_u64_times(ceil_div(c->k, quantum), quantum);
    bool padded = base >= BASE_PAD_X_Y_W && base <= BASE_PAD_W;
    uint64_t channels = padded ? wide : c->c, filters = padded ? tall : c->k;
    uint64_t unit = onv_u64_times(c->groups, c->elem);
    uint64_t x = mul3(unit, onv_u64_times(c->n, channels), c->in),
             y = mul3(unit, onv_u64_times(c->n, filters), c->out);
    uint64_t w = mul3(unit, onv_u64_times(channels, filters), c->kernel);
    if (base <= BASE_PAD_W) {
        uint8_t sum = sums[padded ? base - BASE_W : base];
        return onv_u64_plus(onv_u64_plus(sum & X ? x : 0, sum & Y ? y : 0), sum & W ? w : 0);
    }
    switch (base) {
    case BASE_BATCH_W: return onv_u64_times(c->n, w);
    case BASE_X_X: return onv_u64_times(2, x);
    case BASE_Y_Y: return onv_u64_times(2, y);
    case BASE_WINOGRAD: return winograd_bytes(c, c->n);
    case BASE_WINOGRAD_SIXTEENS: return winograd_bytes(c, onv_u64_times(16, ceil_div(c->n, 16)));
    case BASE_FFT: return fft_bytes(c, x, y, w);
    case BASE_TILES_FFT: return tiles_fft_bytes(c, onv_u64_plus(x, y));
    case BASE_BATCH_W_W: return mul3(2, c->n, w);
    case BASE_WINOGRAD_W:
        return c->rank == 2 && c->kernel == 9
                   ? mul3(UINT64_C(25) * 4, c->groups, onv_u64_times(c->c, c->k))
                   : 0;
    case BASE_EIGHT_X_Y: return copies_of(c, at_once, c->c, c->k, false);
    case BASE_EIGHT_X_Y_W: return copies_of(c, at_once, c->c, c->k, true);
    case BASE_EIGHT_PAD_X_Y_W: return copies_of(c, at_once, wide, tall, true);
    case BASE_EVEN_X_Y_W: return copies_of(c, c->groups + c->groups % 2, c->c, c->k, true);
    case BASE_POWER_X_Y_W: return copies_of(c, c->groups, power, power, true);
    case BASE_PACKED_X_Y_W:
    case BASE_PACKED_X_Y: {
        uint64_t each, together = packed_groups(c, &each);
        uint64_t all = onv_u64_times(ceil_div(c->groups, together), together);
        return copies_of(c, all, each, each, base == BASE_PACKED_X_Y_W);
    }
    case BASE_FLOAT_X_Y_W:
        return onv_u64_times(sizeof(float) / c->elem, onv_u64_plus(onv_u64_plus(x, y), w));
    case BASE_TABLE: return mul3(6, c->out, at_once);
    default: return 0;
    }
}

/* Whole results in tiles of float32, as many as the form says, and what counts them. */
static uint64_t slice_bytes(const conv *c, const onv_conv_form *form)
{
    const onv_conv_tiles *t = &form->tiles;
    uint64_t groups = c->groups, channels = c->c, filters = c->k, quantum = 16 / c->elem;
    if (t->across != 0 && groups > 1) {
        groups = ceil_div(groups, packed_groups(c, &channels));
        if (channels < 64) channels = 64;
        filters = channels;
    } else if (t->across != 0) {
        channels = onv_u64_times(ceil_div(channels, quantum), quantum);
    }
    uint64_t columns = ceil_div(onv_u64_times(channels, c->kernel), t->width);
    uint64_t count = mul3(groups, ceil_div(filters, t->height), columns);
    uint64_t each = (uint64_t)form->splits * ((uint64_t)t->height * t->width + 1) + 1;
    return mul3(count, each, sizeof(float));
}

/* Among how many clusters, `most` at the most, a tile is divided whose sum has `steps` steps: where that saves `least` of
 * them, and in the last of several rounds sooner. */
static uint64_t splits_of(uint64_t most, uint64_t steps, bool rounds, uint64_t least, uint64_t each)
{
    if (most < 2) return 1;
    if (rounds && steps >= onv_u64_times(3, least)) {
        uint64_t part = ceil_div(steps, most);
        return ceil_div(steps, part > 4 ? part : 4);
    }
    if (!rounds && most >= 9 && steps >= 9 * each) return steps / each < most ? steps / each : most;
    uint64_t splits = 1;
    while (splits < most) {
        uint64_t next = 2 * splits < most ? 2 * splits : most;
        bool pays = rounds ? steps >= least * splits
                           : ceil_div(steps, splits) - ceil_div(steps, next) >= least;
        if (!pays) break;
        splits = next;
    }
    return splits;
}

/* Kernels of compute capability 9.0 give whole tiles to clusters of blocks, round after round; in the last round, which
 * they do not fill, several share a tile and leave their parts of it in float32. What pays was measured, by type: tiles of
 * 128 x 128 and more, of half that, and less. */
static uint64_t partial_bytes(const conv *c, const onv_conv_tiles *t)
{
    enum { PARTS = 7, BLOCKS = 18 }; /* 132 multiprocessors, as cuDNN counts them */
    static const struct {
        uint64_t deep, each, least[3];
    } types[] = {{32, 33, {16, 20, 28}}, {64, 17, {8, 10, 14}}, {64, 17, {61, 77, 109}}};
    size_t type = c->elem == 4 ? 0 : c->problem->dtype == ONV_BFLOAT16 ? 2 : 1;
    uint64_t deep = types[type].deep;
    bool weights = c->pass == ONV_CONV_BACKWARD_WEIGHT, forward = c->pass == ONV_CONV_FORWARD;
    uint64_t pixels = onv_u64_times(c->n, forward ? c->out : c->in), made = forward ? c->k : c->c;
    uint64_t rows = ceil_div(weights ? c->k : pixels, t->height);
    uint64_t columns =
        weights ? onv_u64_times(c->kernel, ceil_div(c->c, t->width)) : ceil_div(made, t->width);
    uint64_t steps = weights ? ceil_div(onv_u64_times(c->n, c->out), deep)
                             : onv_u64_times(ceil_div(forward ? c->c : c->k, deep), c->kernel);
    uint64_t cluster = (uint64_t)t->down * t->across, clusters = PARTS * (BLOCKS / cluster);
    uint64_t count = mul3(ceil_div(rows, t->down), ceil_div(columns, t->across), c->groups);
    uint64_t tail = count % clusters, area = (uint64_t)t->height * t->width;
    if (tail == 0) return 0;
    size_t size = area >= UINT64_C(128) * 128 ? 0 : area > UINT64_C(64) * 64 ? 1 : 2;
    uint64_t splits = splits_of(clusters / tail, steps, count > clusters, types[type].least[size],
                                types[type].each);
    return splits > 1 ? splits * tail * cluster * area * sizeof(float) : 0;
}

/* What is made, in float32 and as the form has it. */
static uint64_t split_bytes(const conv *c, conv_base base)
{
    static const conv_base made[] = {[ONV_CONV_FORWARD] = BASE_Y,
                                     [ONV_CONV_BACKWARD_DATA] = BASE_X,
                                     [ONV_CONV_BACKWARD_WEIGHT] = BASE_W};
    if (base == BASE_POWER_X_Y_W && c->pass == ONV_CONV_BACKWARD_WEIGHT)
        return mul3(onv_u64_times(power_of(c), power_of(c)), onv_u64_times(c->groups, c->kernel),
                    sizeof(float));
    conv_base padding = base >= BASE_PAD_X_Y_W && base <= BASE_PAD_W ? BASE_W : BASE_NONE;
    return onv_u64_times(base_bytes(c, made[c->pass] + padding), sizeof(float) / c->elem);
}

/* A form that is far more for this problem than for any that was asked is not its form. */
static uint64_t form_bytes(const conv *c, const onv_conv_form *part, uint64_t most_mib)
{
    conv_base base = (conv_base)part->base;
    bool are_slices = part->tiles.height > 0 && part->tiles.down == 0;
    uint64_t sums = are_slices               ? slice_bytes(c, part)
                    : part->tiles.height > 0 ? partial_bytes(c, &part->tiles)
                    : part->splits > 0       ? onv_u64_times(part->splits, split_bytes(c, base))
                                             : 0;
    uint64_t bytes = onv_u64_plus(onv_u64_plus(base_bytes(c, base), sums), part->tail);
    if (bytes <= most_mib << 20) return bytes;
    uint64_t copies = base_bytes(c, BASE_PAD_X_Y_W);
    return bytes / 2 > copies ? copies : bytes;
}

/* The largest power of two up to 32 that divides `v`. */
static uint64_t alignment(uint64_t v)
{
    v |= 32;
    return v & (~v + 1);
}

static uint64_t largest(const int64_t *dims, uint32_t rank)
{
    int64_t most = dims[0];
    for (uint32_t i = 1; i < rank; i++)
        if (dims[i] > most) most = dims[i];
    return (uint64_t)most;
}

/* Kernels side by side, as a patch embedding has them. */
static bool is_patches(const conv *c)
{
    const onv_conv_problem *p = c->problem;
    for (uint32_t i = 0; i < c->rank; i++)
        if (p->kernel[i] != p->stride[i] || p->pad_begin[i] != 0) return false;
    return c->kernel > 1;
}

/* What is looked for, and what was found so far. */
typedef struct search {
    const conv *conv;
    uint64_t most_mib;
    bool is_b;
    onv_conv_workspace found;
} search;

/* Batch, channels, pixels and what is made of them; not kernels, strides, alignments, types. */
static const uint64_t sizes = 0x7f587c37;

/* What the trees ask, by number. */
static uint64_t feature(const void *context, uint32_t which)
{
    const conv *c = ((const search *)context)->conv;
    const onv_conv_problem *p = c->problem;
    switch (which) {
    case 0: return c->n;
    case 1: return c->c;
    case 2: return c->k;
    case 3: return c->groups;
    case 4: return c->in;
    case 5: return c->out;
    case 6: return c->kernel;
    case 7: return c->stride;
    case 8: return largest(p->dilation, c->rank);
    case 9: return c->rank;
    case 10: return mul3(c->n, onv_u64_times(c->c, c->groups), c->in);
    case 11: return onv_u64_times(c->filters, c->pixels);
    case 12: return onv_u64_times(c->filters, c->taps);
    case 13: return c->pixels;
    case 14: return c->taps;
    case 15: return alignment(c->c);
    case 16: return alignment(c->k);
    case 17: return alignment(c->out);
    case 18: return largest(p->kernel, c->rank);
    case 19: return mul3(c->pixels, c->filters, c->taps);
    case 20: return onv_u64_times(ceil_div(c->pixels, 128), ceil_div(c->k, 128));
    case 21: return alignment(c->in);
    case 22: return (uint64_t)c->in_dims[c->rank - 1];
    case 23: return largest(p->pad_begin, c->rank);
    case 24: return onv_u64_times(ceil_div(onv_u64_times(c->n, c->in), 128), ceil_div(c->c, 128));
    case 25: return onv_u64_times(ceil_div(c->taps, 64), ceil_div(c->k, 64));
    case 26: return onv_u64_times(16, c->k) / c->c;
    case 27: return onv_u64_times(16, c->pixels) / c->taps;
    case 28: return onv_u64_times(16, c->pixels) / c->k;
    case 29: return (uint64_t)c->out_dims[c->rank - 1];
    case 30: return onv_u64_times(c->n, c->in);
    case 31: return (uint64_t)p->kernel[c->rank - 1];
    case 32: return is_patches(c);
    default: return p->dtype == ONV_BFLOAT16;
    }
}

/* Releases before 2.4 bring cuDNN 8, which was asked without TF32, for compute capability 8.6 and 8.9 (the same). Those
 * before 2.1 bring cuDNN 8.5, which is older than Ada (8.9): on a device that it does not know, cuDNN names no kernels
 * with TF32. */
static bool is_old_ieee(const onv_cuda_library_settings *settings)
{
    bool is_known = settings->pytorch >= 2001 || settings->compute_capability != 89;
    return settings->pytorch > 0 && settings->pytorch < 2004 &&
           settings->compute_capability >= 86 && settings->compute_capability < 90 &&
           (!settings->tf32 || !is_known);
}

static uint32_t mode_of(const conv *c, onv_cudnn_heuristics heuristics,
                        const onv_cuda_library_settings *settings)
{
    bool half = is_half(c->problem->dtype);
    if (settings->benchmark && settings->first && !half) return MODE_MOST;
    if (heuristics == ONV_CUDNN_HEURISTICS_B)
        return half ? MODE_B_HALF : settings->tf32 ? MODE_B_TF32 : MODE_B_IEEE;
    if (settings->channels_last && c->rank == 2) return half ? MODE_HALF_NHWC : MODE_NHWC;
    if (!half && is_old_ieee(settings)) return MODE_OLD_IEEE;
    return half ? MODE_HALF : settings->tf32 ? MODE_TF32 : MODE_IEEE;
}

/* The tree that stands for the device and setting: of the same setting on the device before it, or of the usual one. */
static uint32_t tree_of(const conv *c, uint32_t mode, uint32_t capability)
{
    enum { PASSES = 3 };
    uint32_t arch = capability >= 90   ? ARCH_90
                    : capability >= 89 ? ARCH_89
                    : capability >= 86 ? ARCH_86
                                       : ARCH_80;
    const uint32_t tries[][2] = {
        {arch, mode}, {arch == ARCH_89 ? ARCH_86 : ARCH_90, mode}, {ARCH_90, mode}};
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        uint32_t tree = (tries[i][0] * CONV_MODES + tries[i][1]) * PASSES + c->pass;
        if (onv_conv_tree_has(tree)) return tree;
    }
    return (ARCH_90 * CONV_MODES + MODE_TF32) * PASSES + c->pass;
}

/* How far from a limit of a tree the other side counts. Networks were compared with ranges of 9.0 in NCHW, most of them of
 * images, held-out layers with those of mode B forward; depthwise convolutions in channels-last take nothing forward and for data
 * gradients (docs/workspaces.md). */
static float reach_of(const conv *c, uint32_t mode, uint32_t capability)
{
    bool is_depthwise = c->c == 1 && c->k == 1 && c->pass != ONV_CONV_BACKWARD_WEIGHT;
    bool is_image = c->rank == 2 && c->in_dims[1] > 1 && c->pass == ONV_CONV_FORWARD;
    bool is_well_known = mode == MODE_TF32 || mode == MODE_HALF ||
                         (is_depthwise && (mode == MODE_NHWC || mode == MODE_HALF_NHWC)) ||
                         (is_image && (mode == MODE_B_TF32 || mode == MODE_B_HALF));
    return capability >= 90 && is_well_known ? 1.25F : 2;
}

/* With cudnn.benchmark the first call takes the largest workspace of all engines, later ones that of the fastest: of one
 * that takes nothing or of any other. */
static void widen(onv_conv_workspace *ws, const conv *c, bool first)
{
    uint64_t copies = onv_u64_plus(base_bytes(c, BASE_X_Y_W), 256); /* and what aligns them */
    if (first && is_half(c->problem->dtype) && ws->bytes < copies) ws->bytes = copies;
    if (!first) ws->low = 0;
    if (ws->high < copies) ws->high = copies;
}

/* PyTorch tries the engines one after the other, and passes over those whose workspace it cannot have
 * (aten/src/ATen/native/cudnn/Conv_v8.cpp): one of them, the last, takes next to nothing. */
static void pass_over(onv_conv_workspace *ws, const conv *c, uint64_t device_bytes)
{
    uint64_t tensors = base_bytes(c, BASE_X_Y_W);
    if (tensors >= device_bytes) return; /* nothing runs there: what would be wanted */
    uint64_t room = device_bytes - tensors;
    if (ws->bytes > room) ws->bytes = ws->low <= room ? ws->low : 0;
    if (ws->low > ws->bytes) ws->low = ws->bytes;
    if (ws->high > room) ws->high = ws->bytes;
}

/* No larger image was asked of cuDNN, by its pixels, and no float64. */
static bool is_asked(const conv *c)
{
    enum { MOST_PIXELS = 2048 * 2048 };
    bool is_known = is_half(c->problem->dtype) || c->problem->dtype == ONV_FLOAT;
    return is_known && c->in <= MOST_PIXELS && c->out <= MOST_PIXELS;
}

/* In mode B no session of ONNX Runtime was seen whose convolutions all took less than their own forms
 * (docs/accuracy/sessions.md). */
static void meet(void *context, onv_conv_form form, onv_conv_nearness near)
{
    search *s = context;
    uint64_t bytes = form_bytes(s->conv, &form, s->most_mib);
    if (bytes < s->found.low && !(s->is_b && near == ONV_CONV_NEARBY)) s->found.low = bytes;
    if (bytes > s->found.high) s->found.high = bytes;
    if (near == ONV_CONV_LIKELIEST) s->found.bytes = bytes;
}

onv_conv_workspace onv_cudnn_conv_ask(const onv_conv_problem *p, onv_conv_pass pass,
                                      onv_cudnn_heuristics heuristics,
                                      const onv_cuda_library_settings *settings)
{
    if (settings->compute_capability == 0 || !is_positive(p) ||
        onv_is_native_depthwise(p, settings))
        return (onv_conv_workspace){0};
    conv c = conv_of(p, pass);
    uint32_t mode = mode_of(&c, heuristics, settings);
    uint32_t tree = tree_of(&c, mode, settings->compute_capability);
    search s = {&c,
                onv_conv_tree_most_mib(tree),
                heuristics == ONV_CUDNN_HEURISTICS_B,
                {.low = UINT64_MAX}};
    float reach = reach_of(&c, mode, settings->compute_capability);
    onv_conv_tree_ask(tree, &(onv_conv_question){feature, sizes, reach, meet, &s});
    bool is_first = settings->benchmark && settings->first;
    if (settings->benchmark || !is_asked(&c)) widen(&s.found, &c, is_first);
    if (settings->device_bytes > 0) pass_over(&s.found, &c, settings->device_bytes);
    return s.found;
}
