/* Recordings of PyTorch's allocator, event by event: every address, and every segment that is taken or given back.
 *
 * One of them lies here: the CUDA build of PyTorch 2.15 over a substitute for the driver, with three streams
 * (scripts/export/allocator_events.py). With ONV_TEST_DATA those that others recorded on GPUs are read too.
 *
 * A line is an event: `S,address,bytes,pool` a segment that was there, `B,address,bytes` a block in use in it;
 * `a,address,bytes[,stream]` an allocation, `f,address` its free; `s,address,bytes` a segment from the device,
 * `r,address,bytes` one that goes back; `m` and `u`, the same of pages of expandable segments; `o,0,bytes` out of
 * memory. Segments and pages stand before the allocation that asked for them. */
#include <glob.h>
#include <inttypes.h>

#include "alloc/alloc_model.h"
#include "support/held.h"
#include "support/test.h"

typedef struct live {
    uint64_t address;
    uint32_t id;
} live;

typedef struct player {
    onv_allocator a;
    ONV_VEC(live) live;
    ONV_VEC(uint32_t) spare;
    uint32_t n_ids;
    uint64_t taken, gone; /* bytes from the device, and back, since the last allocation */
    bool is_gone;         /* what is cached was given back, and no allocation came since */
    size_t allocations, segments;
    const char *file;
    unsigned long line;
} player;

static uint64_t reserved(const player *p)
{
    return p->a.stats.of[ONV_STAT_RESERVED_BYTES][ONV_POOL_ALL].current;
}

static void need(const player *p, bool good, const char *what)
{
    if (!good) fail_msg("%s, line %lu: %s", p->file, p->line, what);
}

static uint32_t new_id(player *p, uint64_t address)
{
    uint32_t id = p->spare.count > 0 ? p->spare.at[--p->spare.count] : p->n_ids++;
    need(p, onv_vec_push(&p->live, ((live){address, id})), "memory");
    return id;
}

static const live *find(const player *p, uint64_t address)
{
    for (size_t i = p->live.count; i-- > 0;)
        if (p->live.at[i].address == address) return &p->live.at[i];
    return NULL;
}

/* --- What was there --------------------------------------------------------------------------------- */

static void place_segment(player *p, uint64_t address, uint64_t bytes, bool is_small)
{
    onv_error err = {0};
    uint32_t block = ONV_NO_BLOCK;
    onv_torch_state *t = p->a.state;
    onv_torch_pool *pool = is_small ? &t->small[0] : &t->large[0];
    p->a.space.next_address = ONV_SPACE_BASE + address;
    assert_int_equal(onv_device_alloc(&p->a, bytes, pool->which, &block, &err), ONV_OK);
    onv_torch_cache(&p->a, pool, block);
}

/* The free block that this address lies in. */
static uint32_t free_block(const player *p, uint64_t address)
{
    const onv_segment *s = NULL;
    while ((s = allocator_next_segment(&p->a, s)) != NULL)
        for (uint32_t b = s->first; b != ONV_NO_BLOCK; b = onv_space_block(&p->a.space, b)->next) {
            const onv_block *at = onv_space_block(&p->a.space, b);
            if (at->state == ONV_BLOCK_FREE && at->address <= address &&
                address < at->address + at->bytes)
                return b;
        }
    return ONV_NO_BLOCK;
}

static void place_block(player *p, uint64_t address, uint64_t bytes)
{
    onv_error err = {0};
    onv_space *space = &p->a.space;
    onv_torch_state *t = p->a.state;
    uint32_t block = free_block(p, ONV_SPACE_BASE + address);
    need(p, block != ONV_NO_BLOCK, "a block outside of segments");
    bool is_small = onv_space_segment_of(space, block)->pool == ONV_POOL_SMALL;
    onv_torch_pool *pool = is_small ? &t->small[0] : &t->large[0];
    onv_block_set_remove(&pool->free, space, block);
    uint64_t before = ONV_SPACE_BASE + address - onv_space_block(space, block)->address;
    if (before > 0) {
        assert_int_equal(onv_space_split(space, block, before, &err), ONV_OK);
        onv_torch_cache(&p->a, pool, block);
        block = onv_space_block(space, block)->next;
    }
    if (onv_space_block(space, block)->bytes > bytes) {
        assert_int_equal(onv_space_split(space, block, bytes, &err), ONV_OK);
        onv_torch_cache(&p->a, pool, onv_space_block(space, block)->next);
    }
    onv_block *b = onv_space_block(space, block);
    need(p, b->bytes == bytes, "a block that is longer than its place");
    b->state = ONV_BLOCK_USED;
    b->requested = bytes;
    b->id = new_id(p, address);
    while (p->a.owned.count <= b->id) assert_true(onv_vec_push(&p->a.owned, ONV_OWNS_NOTHING));
    p->a.owned.at[b->id] = block;
    onv_stats_add(&p->a.stats, ONV_STAT_ALLOCATED_BYTES, pool->which, bytes);
    onv_stats_add(&p->a.stats, ONV_STAT_REQUESTED_BYTES, pool->which, bytes);
    onv_stats_add(&p->a.stats, ONV_STAT_ALLOCATIONS, pool->which, 1);
}

/* --- What happens ----------------------------------------------------------------------------------- */

static void allocate(player *p, uint64_t address, uint64_t bytes, uint8_t stream)
{
    onv_error err = {0};
    uint64_t before = reserved(p);
    uint32_t id = new_id(p, address);
    p->a.stream = stream;
    if (onv_allocator_alloc(&p->a, id, bytes, &err) != ONV_OK) fail_msg("%s", err.message);
    const onv_block *b = allocator_block(&p->a, id);
    need(p, b != NULL && b->address == ONV_SPACE_BASE + address, "another address than recorded");
    need(p, reserved(p) - before == p->taken, "not as much from the device as recorded");
    p->taken = 0;
    p->is_gone = false;
    p->allocations++;
}

static void drop(player *p, uint64_t address)
{
    onv_error err = {0};
    live *l = (live *)(uintptr_t)find(p, address);
    need(p, l != NULL, "a free of nothing");
    assert_int_equal(onv_allocator_free(&p->a, l->id, &err), ONV_OK);
    assert_true(onv_vec_push(&p->spare, l->id));
    *l = p->live.at[--p->live.count];
}

static bool has_segment(const player *p, uint64_t address)
{
    const onv_segment *s = NULL;
    while ((s = allocator_next_segment(&p->a, s)) != NULL)
        if (s->address == ONV_SPACE_BASE + address) return true;
    return false;
}

/* The first of several lines gives back all that can go; each of them must have gone. */
static void give_back(player *p, uint64_t address, uint64_t bytes, bool is_page)
{
    onv_error err = {0};
    if (!p->is_gone) {
        need(p, is_page || has_segment(p, address), "a segment goes that is not there");
        uint64_t before = reserved(p);
        assert_int_equal(onv_allocator_release_cached(&p->a, &err), ONV_OK);
        p->gone = before - reserved(p);
        p->is_gone = true;
    }
    need(p, is_page || !has_segment(p, address), "a segment stays that went");
    need(p, bytes <= p->gone, "less goes back than recorded");
    p->gone -= bytes;
}

static void run_out(player *p, uint64_t bytes)
{
    onv_error err = {0};
    p->a.options.capacity_bytes = reserved(p);
    assert_int_equal(onv_allocator_alloc(&p->a, p->n_ids, bytes, &err), ONV_OK);
    need(p, p->a.out_of_memory, "memory is found that was not");
}

static void play_line(player *p, const char *line)
{
    uint64_t address = 0, bytes = 0;
    char what = 0, more[16] = "";
    if (line[0] == '#') return;
    int n = sscanf(line, "%c,%" SCNu64 ",%" SCNu64 ",%15s", &what, &address, &bytes, more);
    need(p, n >= 2, "not an event");
    if (what != 'r' && what != 'u') need(p, p->gone == 0, "more goes back than recorded");
    switch (what) {
    case 'S': place_segment(p, address, bytes, strcmp(more, "small") == 0); break;
    case 'B': place_block(p, address, bytes); break;
    case 'a': allocate(p, address, bytes, (uint8_t)atoi(more)); break;
    case 'f': drop(p, address); break;
    case 's':
    case 'm':
        p->a.space.next_address = ONV_SPACE_BASE + address;
        p->taken += bytes;
        p->segments++;
        break;
    case 'r':
    case 'u': give_back(p, address, bytes, what == 'u'); break;
    case 'o': run_out(p, bytes); break;
    default: need(p, false, "not an event");
    }
}

/* Allocations that were compared. */
static size_t play(FILE *file, const char *name)
{
    char line[256];
    bool grows = strstr(name, "expandable") != NULL;
    player p = {.file = name};
    onv_error err = {0};
    const onv_alloc_model *model = onv_alloc_model_find(grows ? "torch-expandable" : "torch");
    assert_int_equal(onv_allocator_init(&p.a, model, NULL, &err), ONV_OK);
    while (fgets(line, sizeof line, file) != NULL) {
        p.line++;
        play_line(&p, line);
    }
    onv_vec_cleanup(&p.live);
    onv_vec_cleanup(&p.spare);
    onv_allocator_cleanup(&p.a);
    return p.allocations;
}

TEST(one_of_our_own)
{
    const char *name = ONV_SOURCE_DIR "/tests/alloc/recorded.csv";
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    assert_true(play(file, name) > 200);
    fclose(file);
}

/* From GPUs: 14 files, 42,395 allocations. */
TEST(those_of_others)
{
    char pattern[1024];
    const char *data = getenv("ONV_TEST_DATA");
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/recorded/allocator/*.csv.gz", data != NULL ? data : "");
    if (data == NULL || glob(pattern, 0, NULL, &found) != 0) skip();
    size_t allocations = 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char command[1200];
        snprintf(command, sizeof command, "gzip -dc '%s'", found.gl_pathv[i]);
        FILE *file = popen(command, "r");
        assert_non_null(file);
        allocations += play(file, found.gl_pathv[i]);
        assert_int_equal(pclose(file), 0);
    }
    assert_int_equal(found.gl_pathc, 14);
    assert_int_equal(allocations, 42395);
    globfree(&found);
}
