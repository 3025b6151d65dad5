#include "base/checked.h"
#include "base/heap.h"
#include "eager/program.h"

onv_status onv_train_program_peaks(const onv_train_program *program, onv_train_peaks *peaks,
                                   onv_error *err)
{
    size_t n_steps = program->steps.count;
    uint64_t *delta = onv_heap_calloc(n_steps + 1, sizeof *delta);
    if (delta == NULL) return onv_fail_memory(err);
    uint64_t total = 0, now = 0;
    bool fits = true;
    *peaks = (onv_train_peaks){0};
    for (size_t i = 0; i < program->buffers.count; i++) {
        const onv_train_buffer *b = &program->buffers.at[i];
        fits &= onv_u64_add(total, b->bytes, &total);
        delta[b->first] += b->bytes; /* differences wrap, their sums do not */
        delta[b->last + 1] -= b->bytes;
    }
    for (size_t i = 0; fits && i < n_steps; i++) {
        now += delta[i];
        uint64_t *of_phase = &peaks->of_phase[program->steps.at[i].phase];
        if (i < program->measured_from || now <= *of_phase) continue;
        *of_phase = now;
        if (now <= peaks->bytes) continue;
        peaks->bytes = now;
        peaks->step = (uint32_t)i;
    }
    onv_heap_free(delta);
    if (fits) return ONV_OK;
    return onv_fail(err, ONV_ERR_OVERFLOW, "the bytes of training do not fit 64 bits");
}
