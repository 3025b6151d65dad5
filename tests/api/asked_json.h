/* Members of an object, from what calls answer. */
#ifndef ONV_TESTS_API_ASKED_JSON_H
#define ONV_TESTS_API_ASKED_JSON_H

#include <jansson.h>

#include "onnxvram/onnxvram.h"

static inline void put(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static inline void put_u64(json_t *object, const char *key, uint64_t value)
{
    put(object, key, json_integer((json_int_t)value));
}

static inline void put_bool(json_t *object, const char *key, bool value)
{
    put(object, key, json_boolean(value));
}

/* Names of the samples are UTF-8. */
static inline json_t *text(const char *value)
{
    return value != NULL ? json_string(value) : json_null();
}

static inline void put_text(json_t *object, const char *key, const char *value)
{
    put(object, key, text(value));
}

static inline void put_known(json_t *object, const char *key, bool is_known, uint64_t value)
{
    put(object, key, is_known ? json_integer((json_int_t)value) : json_null());
}

static inline void put_size(json_t *object, const char *key, uint64_t value)
{
    put_known(object, key, value != ONV_SIZE_UNKNOWN, value);
}

static inline const char *name_of(const onv_analysis *a, size_t tensor)
{
    onv_tensor_info info;
    return onv_analysis_tensor(a, tensor, &info) ? info.name : NULL;
}

static inline json_t *ratio(uint64_t part, uint64_t whole)
{
    return json_real(whole > 0 ? (double)part / (double)whole : 0);
}

static inline json_t *settings(const onv_analysis *a, size_t row,
                               bool (*get)(const onv_analysis *, size_t, size_t,
                                           onv_setting_info *))
{
    json_t *object = json_object();
    onv_setting_info s;
    for (size_t i = 0; get(a, row, i, &s); i++) put_text(object, s.name, s.value);
    return object;
}

/* Parts of the object of a model that stand in a file of their own. */
void asked_put_fits(json_t *object, const onv_fit_info *of, const onv_device_runtime_info *f);
void asked_add_answer(json_t *object, const onv_analysis *a);
void asked_add_training(json_t *object, const onv_analysis *a);
void asked_add_sessions(json_t *object, const onv_analysis *a);
void asked_add_replay(json_t *object, const onv_analysis *a);

#endif
