/* What cuDNN takes while it computes, and what it keeps. */
#ifndef ONV_KERNELS_CUDNN_H
#define ONV_KERNELS_CUDNN_H

#include "ir/type.h"
#include "kernels/device.h"

/* One convolution, always described as its forward pass: `in` and `out` are the spatial dims of its
 * input and its output, also where it is transposed. */
typedef struct onv_conv_problem {
    onv_dtype dtype;
    uint32_t spatial_rank; /* 1 to 3 */
    int64_t batch, in_channels, out_channels, groups;
    int64_t in[3], out[3], kernel[3], stride[3], pad_begin[3], pad_end[3], dilation[3];
    bool transposed;
} onv_conv_problem;

/* How much longer than what it covers the kernel reaches along dim i, from its first place to its last: the
 * padding of both ends together that the sizes ask for; 0: none. False where the sizes make no convolution. */
bool onv_conv_needed_pad(const onv_conv_problem *problem, uint32_t i, int64_t *needed);

typedef enum onv_conv_pass {
    ONV_CONV_FORWARD,
    ONV_CONV_BACKWARD_DATA,
    ONV_CONV_BACKWARD_WEIGHT,
} onv_conv_pass;

/* What one call takes. cuDNN's heuristics choose among engines by a rule of their own, so the bytes are those of the
 * likeliest choice, and `low` to `high` has those that were seen at sizes nearby. */
typedef struct onv_conv_workspace {
    uint64_t bytes, low, high; /* UINT64_MAX where they do not fit */
} onv_conv_workspace;

/* Whose answer: mode A is what PyTorch asks (INSTANT gives the same), B what ONNX Runtime does. */
typedef enum onv_cudnn_heuristics {
    ONV_CUDNN_HEURISTICS_A,
    ONV_CUDNN_HEURISTICS_B,
} onv_cudnn_heuristics;

/* Answers, as networks repeat their layers: the latest one is behind the one before, and replaces the oldest one. */
enum { ONV_CONV_ANSWERS = 8 };
typedef struct onv_conv_answers {
    struct {
        onv_conv_problem problem;
        uint32_t how;
        onv_conv_workspace workspace;
    } at[ONV_CONV_ANSWERS];
    uint32_t count; /* so far */
} onv_conv_answers;

/* By the trees; the second one looks among settings->answers first, whose other settings are always the same. */
onv_conv_workspace onv_cudnn_conv_ask(const onv_conv_problem *problem, onv_conv_pass pass,
                                      onv_cudnn_heuristics heuristics,
                                      const onv_cuda_library_settings *settings);
onv_conv_workspace onv_cudnn_conv_workspace_range(const onv_conv_problem *problem,
                                                  onv_conv_pass pass,
                                                  onv_cudnn_heuristics heuristics,
                                                  const onv_cuda_library_settings *settings);

/* PyTorch computes most depthwise convolutions with kernels of its own, which take nothing. */
bool onv_is_native_depthwise(const onv_conv_problem *problem,
                             const onv_cuda_library_settings *settings);

/* All layers of a recurrent module, which run in one call: `input` values come in, `hidden` go out in each of
 * one or two directions. */
typedef enum onv_rnn_cell { ONV_RNN_LSTM, ONV_RNN_GRU, ONV_RNN_PLAIN } onv_rnn_cell;

typedef struct onv_rnn_problem {
    onv_rnn_cell cell;
    onv_dtype dtype;
    int64_t steps, batch, input, hidden;
    uint32_t layers;
    bool bidirectional;
} onv_rnn_problem;

/* Bytes of its workspace; in training each of forward and the two passes of backward has as much.
 * UINT64_MAX where they do not fit. */
uint64_t onv_cudnn_rnn_workspace(const onv_rnn_problem *problem, bool training,
                                 const onv_cuda_library_settings *settings);

/* Dropout between the layers of one: a bit for each value that goes from a layer to the next, and for each
 * direction that reads it, in the reserve. */
uint64_t onv_cudnn_rnn_dropout_bytes(uint64_t values, bool bidirectional);

/* States of random numbers, which PyTorch makes when the first such module runs, and keeps. */
uint64_t onv_cudnn_dropout_state(const onv_cuda_library_settings *settings);

/* Beside the allocator, for each handle; every thread that calls cuDNN has one. */
uint64_t onv_cudnn_handle_bytes(const onv_cuda_library_settings *settings);

#endif
