/* Workspaces of recurrent layers, and handles.
 *
 * cuDNN says nothing of how they come about. What stands here was fitted to what cuDNN 9.26 asked for 110 modules
 * (three cells, 1 to 4 layers, one and two directions, 1 to 256 steps), and checked on others:
 * docs/accuracy/process.md. A copy of the weights, buffers of some values for each step and for each batch, and for
 * each layer and direction that runs on a stream of its own 8 MiB. */
#include "base/checked.h"
#include "kernels/cudnn.h"

#define STREAM_BYTES UINT64_C(8388608)

/* A sum that stays at the end of its range. */
typedef struct sum {
    uint64_t value;
    bool fails;
} sum;

static uint64_t times(sum *s, uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    s->fails |= !onv_u64_mul(a, b, &product);
    return product;
}

static void add(sum *s, uint64_t more)
{
    s->fails |= !onv_u64_add(s->value, more, &s->value);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

typedef struct cell {
    uint64_t gates;
    uint64_t step_values;  /* for each step and hidden value: forward */
    uint64_t state_values; /* for each hidden value of a layer: forward, training */
    uint64_t trained_state_values;
} cell;

static const cell cells[] = {
    [ONV_RNN_LSTM] = {4, 5, 10, 12}, [ONV_RNN_GRU] = {3, 4, 6, 6}, [ONV_RNN_PLAIN] = {1, 2, 4, 6}};

/* Values of all weights but biases. */
static void add_weights(sum *s, const onv_rnn_problem *p, uint64_t gates, uint64_t directions)
{
    uint64_t hidden = (uint64_t)p->hidden, width = times(s, hidden, directions);
    uint64_t rows = times(s, times(s, gates, hidden), directions);
    sum columns = {0};
    add(&columns, (uint64_t)p->input);
    add(&columns, hidden);
    add(s, times(s, rows, columns.value));
    columns = (sum){0, columns.fails};
    add(&columns, width);
    add(&columns, hidden);
    s->fails |= columns.fails;
    add(s, times(s, times(s, rows, columns.value), p->layers > 0 ? p->layers - 1 : 0));
}

/* Values of buffers: `hidden` and `input` times for each step, `state` for each batch. */
static uint64_t buffers(sum *all, const onv_rnn_problem *p, uint64_t hidden, uint64_t input,
                        uint64_t state)
{
    sum s = {0};
    add(&s, times(&s, hidden, (uint64_t)p->hidden));
    add(&s, times(&s, input, (uint64_t)p->input));
    s.value = times(&s, s.value, (uint64_t)p->steps);
    add(&s, times(&s, state, (uint64_t)p->hidden));
    s.value = times(&s, s.value, (uint64_t)p->batch);
    all->fails |= s.fails;
    return s.value;
}

/* The largest of the stages: forward; gradients of inputs; gradients of states. */
static uint64_t stages(sum *all, const onv_rnn_problem *p, bool training, uint64_t directions)
{
    const cell *c = &cells[p->cell];
    bool both = directions == 2;
    uint64_t streams = times(all, directions, p->layers), deep = p->layers > 1 ? directions : 0;
    uint64_t most = buffers(all, p, c->step_values * directions + (both ? 4 : 0), 1,
                            times(all, c->state_values, streams));
    if (!training) return most;
    uint64_t state = times(all, c->trained_state_values, streams);
    most = larger(most, buffers(all, p, 3 * directions + deep, 3 * directions, state));
    return larger(most, buffers(all, p, (both ? 10 : 4) + deep, 2, state));
}

uint64_t onv_cudnn_rnn_workspace(const onv_rnn_problem *p, bool training,
                                 const onv_cuda_library_settings *settings)
{
    uint64_t directions = p->bidirectional ? 2 : 1, bytes;
    if (settings->compute_capability == 0) return 0;
    if (p->steps < 0 || p->batch < 0 || p->input < 0 || p->hidden < 0) return UINT64_MAX;
    sum s = {0};
    add_weights(&s, p, cells[p->cell].gates, directions);
    add(&s, stages(&s, p, training, directions));
    if (s.fails || !onv_dtype_bytes(p->dtype, s.value, &bytes)) return UINT64_MAX;
    s.value = bytes;
    /* Lengths of sequences, two lists of int32 and a header. */
    add(&s, 256 + 2 * (((uint64_t)p->batch + 3) / 4 * 16));
    /* Before Hopper layers of one direction run one after another. */
    bool on_streams = settings->compute_capability >= 90 || p->layers == 1 || p->bidirectional;
    if (on_streams) add(&s, times(&s, STREAM_BYTES, times(&s, directions, p->layers)));
    return s.fails ? UINT64_MAX : s.value;
}

uint64_t onv_cudnn_rnn_dropout_bytes(uint64_t values, bool bidirectional)
{
    /* Each direction's mask begins at a multiple of 32 bytes. */
    return (values / 256 + (values % 256 != 0)) * 32 * (bidirectional ? 2 : 1);
}

uint64_t onv_cudnn_dropout_state(const onv_cuda_library_settings *settings)
{
    if (settings->compute_capability == 0) return 0;
    /* 24 bytes for each thread that the device can run at once. */
    uint64_t threads = UINT64_C(132) * 2048;
    if (settings->compute_capability < 90) threads = UINT64_C(108) * 2048;
    if (settings->compute_capability == 86) threads = UINT64_C(82) * 1536;
    if (settings->compute_capability == 89) threads = UINT64_C(128) * 1536;
    return 24 * threads;
}

/* Measured, by compute capability. */
uint64_t onv_cudnn_handle_bytes(const onv_cuda_library_settings *settings)
{
    if (settings->compute_capability == 0) return 0;
    if (settings->compute_capability >= 90) return 25348;
    if (settings->compute_capability == 89) return 24580;
    return settings->compute_capability == 86 ? 15748 : 20740;
}
