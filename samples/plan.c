/* Offsets for buffers whose lifetimes are known, in one block of memory, and what PyTorch's allocator would hold for
 * the same: the planner without a model.
 *
 *     cc plan.c -o plan $(pkg-config --cflags --libs onnxvram)
 *     ./plan
 */
#include <inttypes.h>
#include <onnxvram/onnxvram.h>
#include <stdio.h>

enum { N = 5, STEPS = 6 };

/* Each is needed from a step up to, but not including, another one. */
static const onv_interval buffers[N] = {
    {0, 2, 4096}, {1, 3, 1024}, {2, 5, 4096}, {3, 6, 2048}, {4, 6, 1024}};

/* The same as an allocator is asked: at each step frees come first. */
static size_t list_events(onv_event *events)
{
    size_t n = 0, allocated[N];
    for (uint64_t step = 0; step <= STEPS; step++) {
        for (size_t i = 0; i < N; i++)
            if (buffers[i].upper == step) events[n++] = (onv_event){.frees = allocated[i]};
        for (size_t i = 0; i < N; i++) {
            if (buffers[i].lower != step) continue;
            allocated[i] = n;
            events[n++] = (onv_event){.bytes = buffers[i].size, .frees = ONV_NO_INDEX};
        }
    }
    return n;
}

int main(void)
{
    onv_planner_options options = onv_planner_options_default();
    onv_plan_info plan;
    onv_error error = {0};
    uint64_t offsets[N];
    options.alignment = 256;
    if (onv_plan_intervals(buffers, N, &options, offsets, &plan, &error) != ONV_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("id,lower,upper,size,offset\n");
    for (size_t i = 0; i < N; i++)
        printf("%zu,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", i, buffers[i].lower,
               buffers[i].upper, buffers[i].size, offsets[i]);
    fprintf(stderr, "height %" PRIu64 ", lower bound %" PRIu64 "%s\n", plan.height,
            plan.lower_bound, plan.optimal ? ": optimal" : "");

    onv_event events[2 * N];
    onv_simulated_info held;
    size_t n = list_events(events);
    if (onv_simulate_events(events, n, "torch", NULL, &held, &error) != ONV_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    fprintf(stderr, "PyTorch's allocator would reserve %" PRIu64 "\n", held.reserved_peak);
    return 0;
}
