#include "emit/said.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "emit/emit.h"

enum { DECIDES = 1 + ONV_WARNING, ONE_IN = 50, MOST_NAME = 100 };

static const struct {
    const char *code, *text;
    uint8_t severity;
} rows[ONV_N_SAID] = {
#define SAID(name, code, severity, text) {code, text, severity},
#include "emit/said.def"
};

void onv_tally_add(onv_tally *tally, const char *name, uint64_t bytes)
{
    if (tally->count++ == 0) tally->first = name;
    tally->bytes = onv_u64_plus(tally->bytes, bytes);
}

void onv_say(onv_emitter *e, onv_said row, const char *name, uint64_t bytes, const onv_node *node)
{
    if (e->said[row].of.count == 0) e->said[row].node = node;
    onv_tally_add(&e->said[row].of, name, bytes);
}

/* What `{n}`, `{bytes}` or the like at `at` is replaced by. */
static const char *fill_in(const onv_saying *s, const char *at, char *room, size_t size)
{
    const char *first = s->of.first != NULL ? s->of.first : "";
    if (strncmp(at, "{first}", 7) == 0) return first;
    if (strncmp(at, "{name}", 6) == 0) {
        snprintf(room, size, "%s", first);
        return room;
    }
    uint64_t n = at[1] == 'n'   ? s->of.count
                 : at[1] == 'b' ? s->of.bytes
                 : at[1] == 'm' ? s->more
                                : s->rest;
    snprintf(room, size, "%" PRIu64, n);
    return room;
}

static void print(const onv_emitter *e, onv_said row, uint64_t kept)
{
    char text[1024], room[MOST_NAME + 1];
    size_t used = 0;
    const onv_saying *s = &e->said[row];
    for (const char *at = rows[row].text; *at != '\0' && used < sizeof text;) {
        size_t plain = strcspn(at, "{");
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%.*s%s", (int)plain, at,
                             at[plain] != '\0' ? fill_in(s, at + plain, room, sizeof room) : "");
        at += plain;
        if (*at != '\0') at = strchr(at, '}') + 1;
    }
    bool warns = rows[row].severity == DECIDES ? s->of.bytes > kept / ONE_IN
                                               : rows[row].severity == ONV_WARNING || s->warns;
    onv_model_diag(e->model, warns ? ONV_WARNING : ONV_NOTE, rows[row].code,
                   s->node != NULL ? s->node->name : NULL, "%s", text);
}

/* What a reading of the file is compared with: what training keeps; in inference, the parameters. */
static uint64_t bytes_at_stake(onv_emitter *e)
{
    const onv_eager *eager = e->eager;
    uint64_t bytes = 0;
    if (!e->options->inference) e->status = onv_eager_saved(e->model, eager, &bytes, NULL, e->err);
    for (uint32_t i = 0; i < eager->storages.count && e->options->inference; i++)
        if (eager->storages.at[i].kind == ONV_STORAGE_PARAMETER)
            bytes = onv_u64_plus(bytes, eager->storages.at[i].bytes);
    return bytes;
}

void onv_say_up_to(onv_emitter *e, onv_said last)
{
    uint64_t kept = 0;
    for (uint32_t row = 0; row <= last && row < ONV_N_SAID; row++) {
        if (e->said[row].of.count == 0) continue;
        if (rows[row].severity == DECIDES && kept == 0 && e->status == ONV_OK)
            kept = bytes_at_stake(e);
        if (e->status == ONV_OK) print(e, (onv_said)row, kept);
        e->said[row].of.count = 0;
    }
}
