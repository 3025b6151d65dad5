/* Workspaces of recurrent layers, and handles.
 *
 * cuDNN says nothing of how they come about. What stands here was fitted to what cuDNN 9.26 asked for 110 modules
 * (three cells, 1 to 4 layers, one and two directions, 1 to 256 steps), and checked on others:
 * docs/accuracy/process.md. A copy of the weights, buffers of some values for each step and for each batch, and for
 * each layer and direction that runs on a stream of its own 8 MiB. */
#include "base/checked.h"
#include "kernels/cudnn.h"

#define STREAM_BYTES UINT64_C(8388608)

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
static uint64_t weights(const onv_rnn_problem *p, uint64_t gates, uint64_t directions)
{
    uint64_t hidden = (uint64_t)p->hidden, width = onv_u64_times(hidden, directions);
    uint64_t rows = onv_u64_times(gates, width);
    uint64_t first = onv_u64_times(rows, onv_u64_plus((uint64_t)p->input, hidden));
    uint64_t next = onv_u64_times(rows, onv_u64_plus(width, hidden));
    return onv_u64_plus(first, onv_u64_times(next, p->layers > 0 ? p->layers - 1 : 0));
}

/* Values of buffers: `hidden` and `input` times for each step, `state` for each batch. */
static uint64_t buffers(const onv_rnn_problem *p, uint64_t hidden, uint64_t input, uint64_t state)
{
    uint64_t step = onv_u64_plus(onv_u64_times(hidden, (uint64_t)p->hidden),
                                 onv_u64_times(input, (uint64_t)p->input));
    uint64_t all = onv_u64_plus(onv_u64_times(step, (uint64_t)p->steps),
                                onv_u64_times(state, (uint64_t)p->hidden));
    return onv_u64_times(all, (uint64_t)p->batch);
}

/* Whether PyTorch asks for a kernel that stays on the device (use_persist_device_heuristics(), cudnn/RNN.cpp), and cuDNN takes more for
 * it: not for 128 values. Training with few steps, or inputs four times as wide, takes 4 to 9 % more than is counted. */
static bool persists(const onv_rnn_problem *p, uint32_t compute_capability)
{
    enum { LEAST = 256, MOST = 1024, OF = 128, MOST_BATCH = 128 };
    bool fits = p->hidden >= LEAST && p->hidden <= MOST && p->hidden % OF == 0 &&
                p->input % OF == 0 && p->batch % 8 == 0 && p->batch <= MOST_BATCH;
    return fits && p->cell == ONV_RNN_LSTM && p->dtype == ONV_FLOAT16 && p->layers == 1 &&
           !p->bidirectional && compute_capability >= 80 && compute_capability != 86;
}

/* The largest of the stages: forward; gradients of inputs; gradients of states. */
static uint64_t stages(const onv_rnn_problem *p, bool training, uint64_t directions, bool persists)
{
    enum { PERSISTENT = 16, LESS_STATE = 2 }; /* more for each step, less for each batch */
    const cell *c = &cells[p->cell];
    bool both = directions == 2;
    uint64_t streams = onv_u64_times(directions, p->layers), deep = p->layers > 1 ? directions : 0;
    uint64_t most = buffers(p, c->step_values * directions + (both ? 4 : 0), 1,
                            onv_u64_times(c->state_values, streams));
    if (persists) most = buffers(p, c->step_values + PERSISTENT, 1, c->state_values - LESS_STATE);
    if (!training) return most;
    uint64_t state = onv_u64_times(c->trained_state_values, streams);
    most = larger(most, buffers(p, 3 * directions + deep, 3 * directions, state));
    return larger(most, buffers(p, (both ? 10 : 4) + deep, 2, state));
}

uint64_t onv_cudnn_rnn_workspace(const onv_rnn_problem *p, bool training,
                                 const onv_cuda_library_settings *settings)
{
    uint64_t directions = p->bidirectional ? 2 : 1, bytes;
    if (settings->compute_capability == 0) return 0;
    if (p->steps < 0 || p->batch < 0 || p->input < 0 || p->hidden < 0) return UINT64_MAX;
    uint64_t values =
        onv_u64_plus(weights(p, cells[p->cell].gates, directions),
                     stages(p, training, directions, persists(p, settings->compute_capability)));
    if (!onv_dtype_bytes(p->dtype, values, &bytes)) return UINT64_MAX;
    /* Lengths of sequences, two lists of int32 and a header. */
    bytes = onv_u64_plus(bytes, 256 + 2 * (((uint64_t)p->batch + 3) / 4 * 16));
    /* Before Hopper layers of one direction run one after another. */
    bool on_streams = settings->compute_capability >= 90 || p->layers == 1 || p->bidirectional;
    uint64_t streams = on_streams ? onv_u64_times(directions, p->layers) : 0;
    return onv_u64_plus(bytes, onv_u64_times(STREAM_BYTES, streams));
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
