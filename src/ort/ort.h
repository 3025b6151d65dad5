/* ONNX Runtime's allocation plan: which values share a buffer, decided before anything runs.
 *
 * Read in source (onnxruntime/core/framework/allocation_planner.cc). For each node output, in
 * execution order, the first that applies:
 *   1. an output of its graph has a buffer of its own;
 *   2. a kernel that aliases shares its input's buffer;
 *   3. a kernel that may work in place takes over an input that nobody else will read, of the same
 *      shape and element size;
 *   4. the buffer freed last that was made for the same shape and element size is used again;
 *   5. a new buffer.
 * A buffer is freed after the node that reads it last; what nobody reads may be used again, but is not
 * freed before the run is over.
 * Graphs are planned one by one: a subgraph takes nothing over from the graph around it.
 *
 * What If, Loop and Scan allocate beside their graphs, and what they hand on, is in flow.c.
 *
 * Which kernels share depends on the provider (plan.c has the table). Two shapes are only equal
 * where ONNX Runtime knows both, which is less often than here: where a model computes the shapes of
 * its Reshapes, hardly anything is used again (src/rewrite/seen.h).
 */
#ifndef ONV_ORT_ORT_H
#define ONV_ORT_ORT_H

#include "alloc/alloc.h"
#include "graph/liveness.h"
#include "kernels/device.h"
#include "ort/settings.h"

typedef enum onv_ort_provider {
    ONV_ORT_CUDA, /* shape arithmetic and small integers stay on the host; inputs are copied in */
    ONV_ORT_HOST, /* the other side of a session with CUDA: what stays on the host */
    ONV_ORT_CPU,  /* everything is in the memory that is counted, the caller's inputs are not */
} onv_ort_provider;

/* Which workspaces of convolutions, as cuDNN's heuristics choose, and which branches and sizes, as data decides: the largest
 * ones but for LEAST. */
typedef enum onv_ort_choice { ONV_ORT_LIKELY, ONV_ORT_LEAST, ONV_ORT_MOST } onv_ort_choice;
enum { ONV_ORT_CHOICES = ONV_ORT_MOST + 1 };

/* Whose plan it is, and what is known of the graph. */
typedef struct onv_ort_session {
    onv_ort_provider provider;
    const onv_ort_settings *settings; /* NULL: the defaults */
    onv_cuda_library_settings cuda;   /* whose workspaces; without a device: none */
    /* By value: what ONNX Runtime knows of shapes before it runs (src/rewrite/seen.h). NULL: all. */
    const onv_type *seen;
} onv_ort_session;

/* A graph in the steps: from `first` up to but not including `end`; empty where it never runs. */
typedef struct onv_ort_graph {
    uint32_t first, end;
    uint32_t region; /* of the timeline; ONV_NO_REGION: the main graph */
    bool is_body; /* what its iterations free is their stream's until the run of the session ends */
    bool has_no_pattern; /* a sequence or an optional is fed to it */
    uint8_t
        stream; /* that its kernels run on: 1 in the main graph, one more for each graph around it */
} onv_ort_graph;

/* How long a buffer is held, as its graph runs again and again. */
typedef enum onv_ort_life {
    ONV_ORT_PLANNED, /* as the plan says; it lies in the pattern of its graph. No other does */
    ONV_ORT_FETCHED, /* as the plan says: a workspace, an output of a graph that is no body */
    ONV_ORT_STATE, /* of a Loop's body: until the next iteration is over, the last two until the Loop is */
    ONV_ORT_STACKED, /* of a Loop's body: a slice, until the Loop is over */
    /* Of a Loop's body: an element of a sequence that grows by it. Each iteration makes all of them anew, and they stay until the
     * next one is over, those of the last as long as the plan says. */
    ONV_ORT_GATHERED,
    ONV_ORT_ONCE, /* one for all iterations of a body */
    /* What the plan, which has one iteration of a body, holds for the others: the state of the one before, all slices
     * but the last. */
    ONV_ORT_BEFORE,
    ONV_ORT_SLICES,
} onv_ort_life;

/* As the `stream` of a buffer of the plan: it is asked for without one. All others are their graph's. */
#define ONV_ORT_NO_STREAM UINT8_MAX

/* Of a buffer whose size is a choice; of 0 bytes it is not asked for. */
typedef struct onv_ort_open_size {
    uint32_t buffer;
    uint64_t bytes[ONV_ORT_CHOICES];
} onv_ort_open_size;

typedef struct onv_ort_plan {
    const onv_live *live; /* whose steps and regions are those of the plan */
    const onv_ort_settings *settings;
    onv_buffer *buffers; /* INPUT and OUTPUT are those of the main graph; WORKSPACE: what a kernel
                             takes for the time it runs, which no plan and no pattern holds */
    uint8_t *life;       /* by buffer: onv_ort_life */
    onv_graph_id *graph_of; /* by buffer: whose plan it is part of */
    uint32_t count;
    uint32_t
        *of_value; /* by value; UINT32_MAX: on the host, the caller's, in a weight or a slice */
    onv_ort_graph *graphs;
    uint32_t n_graphs;
    onv_value_id
        *feeds; /* the main graph's inputs, in the order in which they are copied to the device */
    uint32_t n_feeds;
    uint64_t reused; /* values that took over a buffer by the rules 2 to 4 */
    onv_ort_open_size *open_sizes;
    uint32_t n_open_sizes;
    bool has_branches;
    bool takes_least; /* of branches, runs take those with the smallest peaks */
} onv_ort_plan;

/* Requires that every value is sized and `live` is in the order `ort`. In the model's arena. Cost:
 * linear in the uses, times the buffers that are free at a time. */
onv_status onv_ort_plan_compute(onv_model *model, const onv_live *live,
                                const onv_ort_session *session, onv_ort_plan *plan, onv_error *err);

/* Changes it to these workspaces, branches and sizes; at first it has the likely ones. Whether others than those are possible. */
bool onv_ort_plan_choose(onv_ort_plan *plan, onv_ort_choice choice);

/* Handles of cuBLAS and of cuDNN, each, that a session has once all its branches ran, and at least. */
typedef struct onv_ort_handles {
    uint64_t least, most;
    bool has_conv; /* one more of cuDNN */
} onv_ort_handles;

onv_status onv_ort_count_handles(const onv_model *model, const onv_live *live,
                                 const onv_ort_session *session, onv_ort_handles *handles,
                                 onv_error *err);

/* One run as a timeline with all its branches, which borrows from the plan: not to be cleaned up. */
onv_timeline onv_ort_plan_timeline(const onv_ort_plan *plan);

/* Appends `n_runs` runs of a session: their steps, those of one run after those of the other, and what they ask of the
 * arena. Buffers that are there already, initializers, stay to the end. Of branches the one with the larger peak runs
 * (takes_least: the smaller), in all runs the same. Iterations stand one after the other (session.c says how many). From its second
 * execution on the temporaries of a graph lie in one container, packed as the first one traced them, for as long as it runs;
 * that of the main graph comes after the inputs. Inputs and outputs of the main graph are given back when their run is over. */
onv_status onv_ort_add_runs(const onv_ort_plan *plan, uint32_t n_runs,
                            const onv_alloc_options *options, onv_timeline *t, onv_error *err);

#endif
