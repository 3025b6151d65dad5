/* The JSON text of a program: in PyTorch's archive (a zip file), compressed by gzip, or as it is.
 *
 * Of an archive the central directory and two entries are read: "<any>/models/model.json", before
 * PyTorch 2.8 "serialized_exported_program.json"; and "<any>/data/weights/model_weights_config.json", which becomes
 * a member of the program's object. Weights and sample inputs are in other entries.
 */
#ifndef ONV_PROGRAM_ARCHIVE_H
#define ONV_PROGRAM_ARCHIVE_H

#include "load/source.h"

/* {"config": {parameter: {"path_name": the file of its data}}}. */
#define ONV_PROGRAM_WEIGHTS "weights_config"

typedef struct onv_program_text {
    char *at; /* on the heap; not terminated */
    size_t bytes;
} onv_program_text;

/* Whether a file that begins so may be a program: a zip archive, gzip data, or JSON text. */
bool onv_program_begins(const void *head, size_t bytes);

/* At most `most_bytes` of text. ONV_ERR_FORMAT: a damaged file, or one without that entry; ONV_ERR_LIMIT: more text.
 * The caller frees `text` with onv_program_text_cleanup, also after a failure. */
onv_status onv_program_text_read(onv_source *source, uint64_t most_bytes, onv_program_text *text,
                                 onv_error *err);
void onv_program_text_cleanup(onv_program_text *text);

/* Memory that zlib takes. */
void *onv_program_zalloc(void *opaque, unsigned items, unsigned size);
void onv_program_zfree(void *opaque, void *memory);

#endif
