/* Deployments: models that a server's or a library's own files name, in place of models of the command line, and what they
 * take together in one process. The folder is the model of the command line. */
#ifndef ONV_CLI_DEPLOY_H
#define ONV_CLI_DEPLOY_H

#include <jansson.h>

#include "cli/process.h"

/* What --genai and --triton exclude. */
onv_cli_verdict onv_cli_check_deployment(onv_cli *cli);

/* An onv_cli_work_fn over an onv_cli_task (the context): analyses the folder and writes its answer to each output. */
void onv_cli_deploy(void *context, onv_cli_record *record);

/* --- The answers ------------------------------------------------------------------------------- */

enum { ONV_CLI_SIZE_TEXT = 64 };

/* An answer while it is made: as text for people, and the same figures by the keys of reports. */
typedef struct onv_cli_deployment {
    const onv_cli *cli;
    FILE *text;
    json_t *json;
    bool has_failed; /* a part of the JSON has no memory */
    bool fits;       /* one of the budgets, or none is given */
    bool is_warned;  /* of a part */
    char path[4096]; /* the file that an error is about */
} onv_cli_deployment;

/* False with an error about a file. */
bool onv_cli_answer_genai(onv_cli_deployment *d, onv_error *error);
bool onv_cli_answer_triton(onv_cli_deployment *d, onv_error *error);

/* Puts a value that is handed over. */
void onv_cli_put(onv_cli_deployment *d, json_t *object, const char *key, json_t *value);
void onv_cli_put_number(onv_cli_deployment *d, json_t *object, const char *key, uint64_t number);

/* A new object at the end of the list. */
json_t *onv_cli_put_row(onv_cli_deployment *d, const char *list);

/* Lines of text that are keys, too. A name may be anybody's: what would act on a terminal is an escape in both. */
void onv_cli_put_name(onv_cli_deployment *d, json_t *object, const char *key, const char *name);
void onv_cli_put_size(onv_cli_deployment *d, json_t *object, const char *what, const char *key,
                      uint64_t bytes);
void onv_cli_put_range(onv_cli_deployment *d, json_t *object, const char *what, const char *key,
                       uint64_t low, uint64_t high);

/* What all of it takes: "together". */
void onv_cli_put_total(onv_cli_deployment *d, uint64_t low, uint64_t high);

/* Whose libraries count (NULL or "": none do): ", H100 (assumed)" without an end of the line. */
void onv_cli_put_gpu(onv_cli_deployment *d, const char *gpu, bool is_assumed);

/* Whether it fits, in words without an end of the line; returns the row. */
json_t *onv_cli_put_budget(onv_cli_deployment *d, size_t budget, bool fits);
uint64_t onv_cli_usable(const onv_cli *cli, size_t budget);

/* Says what is uncertain about a part. */
void onv_cli_warn_of(onv_cli_deployment *d, const onv_analysis *part, const char *path);

/* An analysis of a part, which no budget judges: the libraries are those of the first budget's GPU. */
void onv_cli_use_budget(const onv_cli *cli, onv_options *options);

#endif
