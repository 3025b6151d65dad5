/* The table of GPUs: how much memory a card has and how fast it is, by the name people call it.
 *
 * Each row has two sizes. `nominal_gib` is the capacity as sold (NVIDIA's "80 GB" of device
 * memory are GiB). `usable_mib` is the total that the driver reports, which is less: ECC and the
 * firmware take their part. Where no reading was found it is the nominal capacity; `source` says
 * which of the two it is and where it was read.
 *
 * The reading is what nvidia-smi prints as the total. Recent drivers count in it a reserve of their
 * own that no program gets: cuMemGetInfo's total is some 0.3 to 0.7 GiB lower (docs/gpus.md). The
 * Jetson rows hold cuMemGetInfo's total, as nvidia-smi prints none there.
 */
#ifndef ONV_SPEED_GPU_H
#define ONV_SPEED_GPU_H

#include <stddef.h>
#include <stdint.h>

/* As published, dense. 0: it has no such units. */
typedef struct onv_gpu_rates {
    double fp32; /* TFLOP/s of float32 outside of tensor cores */
    double tf32; /* TFLOP/s of float32 as TF32 */
    double
        half; /* TFLOP/s of 16 bits with sums in float32; from compute capability 8.0 on of bfloat16, too */
    double bandwidth; /* GB/s of the memory, GB of 10^9 bytes */
} onv_gpu_rates;

typedef struct onv_gpu_speed {
    onv_gpu_rates fastest, slowest; /* of the cards that have the name: PCIe and SXM */
    double pcie;                    /* GB/s in one direction */
    const char *source;             /* NULL: the speed is not known */
} onv_gpu_speed;

typedef struct onv_gpu {
    const char *
        name; /* unique: "A100 80GB"; aliases follow its end, "" ends them; no two rows share one */
    const char *model;  /* where it was sold with several sizes: "A100"; else NULL */
    const char *source; /* of usable_mib */
    const onv_gpu_speed *speed;
    uint32_t usable_mib;
    uint16_t nominal_gib;
    unsigned char cc_major, cc_minor; /* compute capability */
} onv_gpu;

static inline uint64_t onv_gpu_bytes(const onv_gpu *gpu)
{
    return (uint64_t)gpu->usable_mib << 20;
}

extern const onv_gpu onv_gpus[];
extern const size_t onv_n_gpus;

/* The GPU of that name, or NULL if there is none or more than one ("A100"). Case, spaces, dashes,
 * underscores and the words NVIDIA, GeForce, RTX, GTX, Tesla, Jetson before and Generation after
 * the name don't matter; the capacity may follow: "rtx4090", "NVIDIA A100-80GB", "T4 16G". */
const onv_gpu *onv_gpu_find(const char *name);

/* What a name that onv_gpu_find refuses may mean: the rows it fits, else those whose names have
 * it as a word or several ("thor", "orin nano"). Writes up to `capacity` of them, in the table's order, and returns how many there are. */
size_t onv_gpu_candidates(const char *name, const onv_gpu **found, size_t capacity);

#endif
