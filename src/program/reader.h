/* Inside of the reader: a document becomes a program. */
#ifndef ONV_PROGRAM_READER_H
#define ONV_PROGRAM_READER_H

#include <setjmp.h>

#include "base/ptr_map.h"
#include "ir/model.h"
#include "onnxvram/options.h"
#include "program/document.h"
#include "program/program.h"

/* A graph whose calls are read when those of all graphs before it are: so recursion is not needed. */
typedef struct onv_program_pending {
    const onv_doc *graph;
    const char *name;
    uint32_t call;
    uint32_t depth; /* graphs around it */
} onv_program_pending;

typedef struct onv_program_reader {
    onv_model *model; /* whose arena, strings and pool of dims are used */
    onv_program *program;
    const onv_limits *limits; /* resolved */
    onv_error *err;
    jmp_buf wrong; /* where it leaves to, with `status` */
    onv_status status;
    const onv_program_call *call;         /* whose arguments and results are read now, or NULL */
    ONV_VEC(onv_program_pending) pending; /* by graph */
    /* Of the graph that is read now. */
    uint32_t graph;
    const onv_doc *tensors, *sizes; /* tensor_values, sym_int_values */
    onv_ptr_map tensor_at, size_at; /* their members, by name, interned */
    onv_ptr_map values;             /* what was made so far, likewise */
    onv_ptr_map
        calls; /* of the network's graph: by name, the call, or the one before it where it is left out */
    /* What was read before, by its text, interned. */
    onv_ptr_map dims, stacks;
    /* Of the data of parameters, by name and by file: its place in the document, its first owner. */
    onv_ptr_map files, owners;
    ONV_VEC(onv_dim) dim_list;
    ONV_VEC(uint32_t) ids; /* of the list that is read now */
} onv_program_reader;

/* What reads leaves where the document is wrong, and without memory: the error is filled. Nothing is lost, as all that it makes is in the
 * arena or in the reader. */
_Noreturn void onv_program_leave(onv_program_reader *r, onv_status status);
_Noreturn void onv_program_unexpected(onv_program_reader *r, const char *at, const char *expected,
                                      const onv_doc *found);
/* Leaves without memory: where it is false / NULL. */
void onv_program_fit(onv_program_reader *r, bool has_room);
void *onv_program_made(onv_program_reader *r, void *memory);
const char *onv_program_intern(onv_program_reader *r, const char *text, size_t length);
void onv_program_work(onv_program_reader *r, uint64_t units);

/* The member of that type, which must be there / may be absent or null: then NULL. */
const onv_doc *onv_program_member(onv_program_reader *r, const onv_doc *object, const char *key,
                                  onv_doc_type type);
const onv_doc *onv_program_optional(onv_program_reader *r, const onv_doc *object, const char *key,
                                    onv_doc_type type);

/* An interned string; its length is limited. */
const char *onv_program_name(onv_program_reader *r, const char *at, const onv_doc *text);

/* The member of a union, which has one: {"as_int": 3}. */
const onv_doc *onv_program_variant(onv_program_reader *r, const char *at, const onv_doc *object,
                                   const char **kind);

/* A size: {"as_int": 3}, {"as_expr": {...}}, or, of an argument, {"as_name": ...} as sym_int_values has it. */
onv_dim onv_program_size(onv_program_reader *r, const char *at, const onv_doc *size);

/* The element type of a number of torch's; ONV_UNDEFINED: unknown. */
onv_dtype onv_program_dtype(int64_t scalar_type);

/* The value of that name in the graph that is read / a new one, as tensor_values describes it. */
uint32_t onv_program_find_value(onv_program_reader *r, const onv_doc *name);
uint32_t onv_program_add_value(onv_program_reader *r, const onv_doc *name,
                               onv_program_value_kind kind, uint32_t call);

/* The arguments of a call (arguments.c). Graphs among them are read later. */
void onv_program_arguments(onv_program_reader *r, const onv_doc *inputs, onv_program_call *to);

/* All graphs of a document's graph_module (graphs.c), with what a recording has of lifetimes, or NULL. */
void onv_program_graphs(onv_program_reader *r, const onv_doc *graph_module,
                        const onv_doc *lifetimes);

/* Members by their names, interned: the map is made anew. */
void onv_program_map_members(onv_program_reader *r, const onv_doc *object, onv_ptr_map *map);

/* A copy in the arena of what was pushed from `first` on, which is removed; NULL without memory. */
#define ONV_PROGRAM_TAKE(r, vec, first)                                                            \
    onv_program_take(&(r)->model->arena, (vec)->at, sizeof *(vec)->at, &(vec)->count, first)
void *onv_program_take(onv_arena *arena, const void *all, size_t size, size_t *count, size_t first);

#endif
