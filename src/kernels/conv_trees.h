/* Decision trees that say which form the workspace of a convolution takes (cudnn_conv.c), fitted to answers of cuDNN.
 *
 * They are data, share/cudnn/conv.trees, which scripts/cudnn/fit.py writes and the build makes part of the program; they
 * are walked where they lie. Little-endian, without padding, but that the last bit is read as part of a word:
 *
 *     u32 place of heads, of kinds, of tails, of parts, of pairs, of limits, of roots, of nodes
 *     codes   u32 first + 2^24 * bits, eight of each       classes: 2^bits numbers from the first one on
 *     heads   u16 kind + 8 * feature                       kinds of inner nodes: what is under it, and what of it comes first
 *     kinds   u16 height, width, u8 down, across, base     tiles of kernels, and what a form begins with
 *     tails   u32
 *     parts   u32 kind + 2^10 * splits + 2^21 * tail       forms, by the numbers of their kinds and tails
 *     pairs   u16 part, u16 other                          the commonest leaves of two forms: the likeliest one and the second
 *     limits  f32                                          those of more than three digits
 *     roots   u32 place, u32 most_mib                      by architecture, mode and pass; place 0: no tree, else 1 +
 *                                                          the first bit among the nodes
 *     nodes   inner  head, limit, skip if its kind has one at most the limit: low, else high
 *             leaf   bit 1, part                           both forms are the same
 *                    bit 0, 1 + pair; or bit 0, 0, part, part
 *
 * Nodes are bits, the lowest of a byte first. A number is three bits, which say its class, and as many as that class has, which are
 * added to its first number. The eight classes are a code: one for heads, for skips, for parts of leaves of one form, for pairs, for
 * first parts, for second parts, and one for the limits of each feature. Heads, parts and pairs are numbered by how common they are.
 * Number n below 1,000 is that limit; below 10,000 it is (n - 900 p) * 10^p in float32, where p is (n - 100) / 900; others are rows
 * of limits.
 *
 * Kinds: 0 two leaves, low first; 1 a leaf, then high; 2 a leaf, which is high, then low; 3 low, then high; 4 high, then low; 5 low, then
 * high, which begins `skip` bits on. Without a skip what comes first is read to find what is behind; it is the smaller one. A root
 * is no leaf.
 *
 * A tree is one root. Cost of a question: the square of its depth at most. */
#ifndef ONV_KERNELS_CONV_TREES_H
#define ONV_KERNELS_CONV_TREES_H

#include <stdbool.h>
#include <stdint.h>

/* Rows and columns of a tile of the result, and of a cluster of blocks in tiles; none: 0. Of a cluster of no rows the parts of
 * sums are whole results; `across`: with channels padded. */
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

/* The likeliest form and the second one of the leaf that a problem comes to, and those of each leaf to which it would come if a
 * size that is near its limit were on the other side: where a tree changes its mind is known no better than that. */
typedef enum onv_conv_nearness {
    ONV_CONV_LIKELIEST,
    ONV_CONV_SECOND,
    ONV_CONV_NEARBY
} onv_conv_nearness;

/* `feature` answers by number, for `context`; those with a bit in `sizes` may come near a limit: what is on its other side is less
 * than `reach` times as much, or as little. */
typedef struct onv_conv_question {
    uint64_t (*feature)(const void *context, uint32_t which);
    uint64_t sizes;
    float reach;
    void (*meet)(void *context, onv_conv_form form, onv_conv_nearness near);
    void *context;
} onv_conv_question;

/* Whether there is such a tree. */
bool onv_conv_tree_has(uint32_t root);
/* MiB: the largest answer of that tree that was more than twice the copies. */
uint32_t onv_conv_tree_most_mib(uint32_t root);
/* Requires onv_conv_tree_has(root). */
void onv_conv_tree_ask(uint32_t root, const onv_conv_question *question);

#endif
