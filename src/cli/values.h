/* What stands behind an option: each of these reads its text into the command line, or says what is
 * wrong with it. */
#ifndef ONV_CLI_VALUES_H
#define ONV_CLI_VALUES_H

#include "cli/message.h"
#include "cli/options.h"

/* Writes the message and gives the verdict that goes with it. */
#define onv_cli_reject(...) (onv_cli_usage(__VA_ARGS__), ONV_CLI_USAGE)

/* A size: digits with an optional unit (B, KB, MB, GB, TB: powers of 1000; KiB, MiB, GiB, TiB, and
 * K, M, G, T: powers of 1024). */
bool onv_cli_parse_size(const char *text, uint64_t *bytes);

/* A path, or PATH*N where no file has that very name. */
onv_cli_verdict onv_cli_add_model(onv_cli *cli, const char *text);

onv_cli_verdict onv_cli_add_dim(onv_cli *cli, const char *text);
onv_cli_verdict onv_cli_add_shape(onv_cli *cli, const char *text);
onv_cli_verdict onv_cli_add_input_value(onv_cli *cli, const char *text);
onv_cli_verdict onv_cli_add_output(onv_cli *cli, onv_format format, const char *file);
onv_cli_verdict onv_cli_add_formula(onv_cli *cli, const char *how);
onv_cli_verdict onv_cli_set_align(uint64_t *align, const char *option, const char *text);
onv_cli_verdict onv_cli_add_dump(onv_cli *cli, const char *what);

onv_cli_verdict onv_cli_set_batch(onv_cli *cli, const char *text);
onv_cli_verdict onv_cli_set_budget(onv_cli *cli, const char *text);
onv_cli_verdict onv_cli_set_gpu(onv_cli *cli, const char *text);
onv_cli_verdict onv_cli_set_color(onv_cli *cli, const char *when);
onv_cli_verdict onv_cli_set_effort(onv_cli *cli, const char *text);
onv_cli_verdict onv_cli_set_limit(onv_cli *cli, const char *text);
onv_cli_verdict onv_cli_set_format(onv_cli *cli, const char *text);
onv_cli_verdict onv_cli_set_max_growth(onv_cli *cli, const char *text);
onv_cli_verdict onv_cli_set_margin(onv_cli *cli, const char *text);
onv_cli_verdict onv_cli_set_attention_dropout(onv_cli *cli, const char *text);
/* NULL: no budget. */
onv_cli_verdict onv_cli_set_kv_cache(onv_cli *cli, const char *text);
onv_cli_verdict onv_cli_set_compile(onv_cli *cli, const char *text);

/* For options that share a kind of value; which one is for the message. */
onv_cli_verdict onv_cli_set_precision(onv_precision *to, const char *option, const char *text);
onv_cli_verdict onv_cli_set_unsigned(unsigned *to, const char *option, const char *text,
                                     int64_t least);

#endif
