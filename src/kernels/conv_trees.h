/* Decision trees that say which form the workspace of a convolution takes (cudnn_conv.c), fitted to answers of cuDNN.
 *
 * They are data, share/cudnn/conv.trees, which scripts/cudnn/fit.py writes and the build makes part of the program; they
 * are walked where they lie. Little-endian, without padding:
 *
 *     u32 n_kinds, n_parts, n_pairs, n_limits, n_roots
 *     kinds   u16 height, width, u8 down, across           tiles of kernels
 *     parts   u8 base, tiles, u16 splits, u32 tail         forms
 *     pairs   u16 part, u16 other                          leaves; the top bit of `other`: nothing else was measured
 *     limits  f32
 *     roots   u32 place, u32 most_mib                      by architecture, mode and pass; place 0: no tree, else 1 +
 *                                                          the first byte among the nodes
 *     nodes   leaf   u8 128 + pair / 256, u8 pair % 256
 *             inner  u8 feature, u16 limit, skip            at most the limit: the next node, else `skip` bytes on: seven
 *                                                          bits a byte, the lowest first, the top bit: another follows
 *
 * A tree is one root. Cost of a walk: its depth. */
#ifndef ONV_KERNELS_CONV_TREES_H
#define ONV_KERNELS_CONV_TREES_H

#include <stdbool.h>
#include <stdint.h>

/* Rows and columns of a tile of the result, and of a cluster of blocks in tiles; none: 0. */
typedef struct onv_conv_tiles {
    uint16_t height, width;
    uint8_t down, across;
} onv_conv_tiles;

/* A form. Splits are copies of what is made in float32, in which blocks that share a sum leave their parts. */
typedef struct onv_conv_form {
    uint8_t base; /* conv_base of cudnn_conv.c */
    uint16_t splits;
    uint32_t tail;        /* bytes */
    onv_conv_tiles tiles; /* of kernels that divide only the sums of their last tiles */
} onv_conv_form;

/* The likeliest form and the second, the same one where no other is likely; `sure`: nothing else was measured. */
typedef struct onv_conv_leaf {
    onv_conv_form form, other;
    bool sure;
} onv_conv_leaf;

enum { ONV_CONV_MAX_ROOTS = 1 << 10 };

/* Whether there is such a tree. */
bool onv_conv_tree_has(uint32_t root);
/* MiB: the largest answer of that tree that was more than twice the copies. */
uint32_t onv_conv_tree_most_mib(uint32_t root);
/* `feature` answers by number, for `context`. Requires onv_conv_tree_has(root). */
onv_conv_leaf onv_conv_tree_find(uint32_t root, uint64_t (*feature)(const void *, uint32_t),
                                 const void *context);

/* Every place, limit, pair and part of the file is inside of it. */
bool onv_conv_trees_check(void);

#endif
