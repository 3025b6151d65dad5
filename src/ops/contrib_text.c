/* com.microsoft: generation of text, and what turns text into numbers.
 *
 * A search runs its decoder until max_length, and pads what ends before: the result is as long as
 * that from the start.
 */
#include <string.h>

#include "base/fail.h"
#include "ops/contrib.h"
#include "ops/controlflow.h"
#include "ops/rules.h"

/* --- Searches ---------------------------------------------------------------------------------- */

/* The subgraphs declare what they take; how often the decoder runs changes only the length of its
 * cache, which they declare by name. */
static onv_status run_models(onv_op_ctx *c)
{
    static const char *const names[] = {"encoder", "init_decoder", "decoder"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const onv_attr *attr = onv_op_attr(c, names[i]);
        onv_graph_id body;
        uint32_t n_in, n_out;
        if (attr == NULL || attr->kind != ONV_ATTR_GRAPH) continue;
        ONV_TRY(onv_op_body(c, names[i], &body, &n_in, &n_out));
        onv_op_value *in = ONV_ARENA_ARRAY(c->arena, onv_op_value, n_in);
        onv_op_value *out = ONV_ARENA_ARRAY(c->arena, onv_op_value, n_out);
        if (in == NULL || out == NULL) return onv_fail_memory(c->err);
        for (uint32_t k = 0; k < n_in; k++) in[k].type = onv_type_unknown();
        ONV_TRY(c->run_subgraph(c, body, in, n_in, out, n_out));
    }
    return ONV_OK;
}

/* The vocabulary, where the attribute tells it. */
static onv_dim vocabulary(const onv_op_ctx *c)
{
    int64_t size = onv_op_attr_int(c, "vocab_size", -1);
    return size > 0 ? onv_dim_const(size) : ONV_DIM_UNKNOWN;
}

enum { IDS, MAX_LENGTH, NUM_BEAMS = 3, NUM_RETURNED = 4 };

static onv_status infer_greedy(onv_op_ctx *c)
{
    onv_dim dims[2] = {onv_op_in_dim(c, IDS, 0)}, logits[2] = {dims[0], vocabulary(c)};
    ONV_TRY(onv_tensor_size_at(c, MAX_LENGTH, 0, &dims[1]));
    onv_op_set_out(c, 0, ONV_INT32, dims, 2);
    onv_op_set_out(c, 1, ONV_FLOAT, logits, 2); /* of Sampling */
    return run_models(c);
}

static onv_status infer_beam(onv_op_ctx *c)
{
    onv_dim beams, batch = onv_op_in_dim(c, IDS, 0);
    onv_dim dims[3] = {batch};
    ONV_TRY(onv_tensor_size_at(c, NUM_RETURNED, 0, &dims[1]));
    ONV_TRY(onv_tensor_size_at(c, MAX_LENGTH, 0, &dims[2]));
    ONV_TRY(onv_tensor_size_at(c, NUM_BEAMS, 0, &beams));
    bool whisper = strcmp(c->op->name, "WhisperBeamSearch") == 0;
    /* Where an encoder reads the input, generation starts from nothing. */
    onv_dim prompt = onv_dim_const(1);
    if (onv_op_attr_int(c, "model_type", 0) == 0 && !whisper) prompt = onv_op_in_dim(c, IDS, 1);
    onv_dim scores[4] = {onv_dim_sub(c->dims, dims[2], prompt), batch, beams, vocabulary(c)};
    onv_op_set_out(c, 0, ONV_INT32, dims, 3);
    onv_op_set_out(c, 1, ONV_FLOAT, dims, 2);
    onv_op_set_out(c, 2, ONV_FLOAT, scores, 4);
    onv_op_set_out(c, 3, ONV_FLOAT, NULL, -1);  /* cross_qk */
    onv_op_set_out(c, 4, ONV_FLOAT, &batch, 1); /* non_speech_probs */
    return run_models(c);
}

/* --- Text -------------------------------------------------------------------------------------- */

/* Tokenizer: as many tokens as the longest text has. */
static onv_status infer_tokenizer(onv_op_ctx *c)
{
    onv_dim dims[ONV_MAX_RANK];
    int rank = onv_op_in_dims(c, 0, dims);
    if (rank < 0) return onv_op_set_out(c, 0, ONV_STRING, NULL, -1);
    ONV_TRY(onv_tensor_need_rank(c, 0, 1, 2));
    dims[rank] = onv_dim_fresh(c->dims, "tokens", ONV_DIM_UNKNOWN);
    return onv_op_set_out(c, 0, ONV_STRING, dims, rank + 1);
}

/* --- Rows -------------------------------------------------------------------------------------- */

#define SEARCH(op, least, most, outs, rule, extra)                                                 \
    ONV_OP(op, 1, least, most, 1, outs, rule, .flags = ONV_OP_SUBGRAPH | (extra))

static const onv_op rows[] = {
    SEARCH("BeamSearch", 5, 12, 3, infer_beam, 0),
    SEARCH("WhisperBeamSearch", 5, 15, 5, infer_beam, 0),
    SEARCH("GreedySearch", 2, 7, 1, infer_greedy, 0),
    SEARCH("Sampling", 2, 9, 2, infer_greedy, ONV_OP_RANDOM),
    ONV_OP("Tokenizer", 1, 1, 1, 1, 1, infer_tokenizer,
           .flags = ONV_OP_DATA_DEPENDENT | ONV_OP_HOST),
    /* Words [n, characters], filters [width, 1, window, width of a character]. */
    ONV_SAYS("WordConvEmbedding", 1, 4, 4, 1, 1,
             "(words[n, _], filters): [n, filters.0] like filters"),
};

const onv_op_family onv_ops_contrib_text = {"com.microsoft", rows, sizeof rows / sizeof rows[0]};
