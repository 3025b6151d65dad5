#include "program/archive.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ZLIB_CONST /* inflate() does not change what it reads */
#include <minizip/unzip.h>
#include <zlib.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"
#include "load/limits.h"

/* The most that deflate makes of a byte, so that a forged size is refused before it is allocated. */
enum { MOST_RATIO = 1032, LEAST_TEXT = 4096 };
/* Work of an entry of the directory, and bytes of one unit of work. */
enum { ENTRY_WORK = 16, WORK_BYTES = 64 };

static bool starts(const void *head, size_t bytes, const char *magic, size_t length)
{
    return bytes >= length && memcmp(head, magic, length) == 0;
}

static bool is_zip(const void *head, size_t bytes)
{
    return starts(head, bytes, "PK\x03\x04", 4);
}

static bool is_gzip(const void *head, size_t bytes)
{
    return starts(head, bytes, "\x1f\x8b", 2);
}

/* A message of protobuf begins with a field, and '{' is field 15 of a type that was never in use. */
static bool is_json(const void *head, size_t bytes)
{
    const char *at = head;
    size_t i = 0;
    while (i < bytes && (at[i] == ' ' || (at[i] >= '\t' && at[i] <= '\r'))) i++;
    return i < bytes && at[i] == '{';
}

bool onv_program_begins(const void *head, size_t bytes)
{
    return is_zip(head, bytes) || is_gzip(head, bytes) || is_json(head, bytes);
}

void onv_program_text_cleanup(onv_program_text *text)
{
    onv_heap_free(text->at);
    *text = (onv_program_text){0};
}

static onv_status allocate(onv_program_text *text, uint64_t bytes, uint64_t most, onv_error *err)
{
    if (bytes > most || bytes > SIZE_MAX / 2) return onv_limits_spent(most, err);
    char *grown = onv_heap_realloc(text->at, (size_t)bytes + 1);
    if (grown == NULL) return onv_fail_memory(err);
    text->at = grown;
    return ONV_OK;
}

/* --- Zip --------------------------------------------------------------------------------------- */

/* What minizip reads from, as a file. */
typedef struct stream {
    onv_source *source;
    uint64_t at;
    bool failed;
} stream;

static voidpf stream_open(voidpf opaque, const void *name, int mode)
{
    (void)name;
    (void)mode;
    return opaque;
}

static uLong stream_read(voidpf opaque, voidpf file, void *to, uLong size)
{
    stream *s = file;
    const unsigned char *data;
    (void)opaque;
    uint64_t left = s->at < s->source->bytes ? s->source->bytes - s->at : 0;
    if (size > left) size = (uLong)left;
    if (size == 0) return 0;
    if (onv_source_view(s->source, s->at, size, &data, NULL) != ONV_OK) {
        s->failed = true;
        return 0;
    }
    memcpy(to, data, size);
    s->at += size;
    return size;
}

static ZPOS64_T stream_tell(voidpf opaque, voidpf file)
{
    (void)opaque;
    return ((const stream *)file)->at;
}

static long stream_seek(voidpf opaque, voidpf file, ZPOS64_T offset, int origin)
{
    stream *s = file;
    (void)opaque;
    uint64_t from = origin == ZLIB_FILEFUNC_SEEK_END   ? s->source->bytes
                    : origin == ZLIB_FILEFUNC_SEEK_CUR ? s->at
                                                       : 0;
    if (__builtin_add_overflow(from, (uint64_t)offset, &s->at)) return -1;
    return 0;
}

static int stream_close(voidpf opaque, voidpf file)
{
    (void)opaque;
    (void)file;
    return 0;
}

static int stream_error(voidpf opaque, voidpf file)
{
    (void)opaque;
    return ((const stream *)file)->failed;
}

static bool ends(const char *name, const char *tail)
{
    size_t length = strlen(name), n = strlen(tail);
    return length >= n && strcmp(name + length - n, tail) == 0;
}

/* The entries that are read, by their names in the archive's folder. */
typedef enum entry {
    PROGRAM = 0, /* the calls */
    WEIGHTS,     /* which file has the data of each parameter; since PyTorch 2.9 */
    N_ENTRIES,
} entry;

static bool is_entry(const char *name, entry which)
{
    if (which == WEIGHTS) return ends(name, "/data/weights/model_weights_config.json");
    return ends(name, "/models/model.json") ||
           strcmp(name, "serialized_exported_program.json") == 0;
}

typedef struct place {
    unz64_file_pos at;
    bool is_there;
} place;

/* Where the entries are. A name that does not fit the room is none of them. */
static onv_status find_entries(unzFile zip, place places[N_ENTRIES], onv_error *err)
{
    char name[512];
    unz_file_info64 info;
    int code;
    for (code = unzGoToFirstFile(zip); code == UNZ_OK; code = unzGoToNextFile(zip)) {
        ONV_WORK(ENTRY_WORK);
        code = unzGetCurrentFileInfo64(zip, &info, name, sizeof name - 1, NULL, 0, NULL, 0);
        if (code != UNZ_OK) break;
        name[info.size_filename < sizeof name ? info.size_filename : sizeof name - 1] = '\0';
        for (entry i = PROGRAM; i < N_ENTRIES; i++)
            if (!places[i].is_there && is_entry(name, i))
                places[i].is_there = unzGetFilePos64(zip, &places[i].at) == UNZ_OK;
    }
    if (code != UNZ_END_OF_LIST_OF_FILE)
        return onv_fail(err, ONV_ERR_FORMAT, "the directory of the zip archive is damaged");
    if (places[PROGRAM].is_there) return ONV_OK;
    return onv_fail(
        err, ONV_ERR_FORMAT,
        "is a zip archive without an exported program (models/model.json): expected what "
        "torch.export.save() writes; weights alone do not say what PyTorch runs");
}

static const char *const names[N_ENTRIES] = {"model.json", "model_weights_config.json"};

/* `file_bytes`: it has no more compressed ones, whatever the directory says. */
static onv_status read_opened(unzFile zip, entry which, uint64_t file_bytes, uint64_t most,
                              onv_program_text *text, onv_error *err)
{
    unz_file_info64 info;
    if (unzGetCurrentFileInfo64(zip, &info, NULL, 0, NULL, 0, NULL, 0) != UNZ_OK)
        return onv_fail(err, ONV_ERR_FORMAT, "the directory of the zip archive is damaged");
    uint64_t bytes = info.uncompressed_size, compressed = info.compressed_size;
    if (bytes / MOST_RATIO > (compressed < file_bytes ? compressed : file_bytes))
        return onv_fail(err, ONV_ERR_FORMAT,
                        "%s in the archive cannot have %" PRIu64 " bytes of %" PRIu64
                        " compressed ones",
                        names[which], bytes, compressed);
    uint64_t end = text->bytes + bytes;
    ONV_TRY(end < bytes ? onv_limits_spent(most, err) : allocate(text, end, most, err));
    while (text->bytes < end) {
        uint64_t left = end - text->bytes;
        unsigned part = left < (1 << 20) ? (unsigned)left : 1 << 20;
        ONV_WORK(1 + part / WORK_BYTES);
        int n = unzReadCurrentFile(zip, text->at + text->bytes, part);
        if (n <= 0) break;
        text->bytes += (size_t)n;
    }
    if (text->bytes == end) return ONV_OK;
    return onv_fail(err, ONV_ERR_FORMAT, "%s in the archive is damaged", names[which]);
}

/* Appends what the entry has to the text. */
static onv_status read_entry(unzFile zip, entry which, const place *at, uint64_t file_bytes,
                             uint64_t most, onv_program_text *text, onv_error *err)
{
    if (unzGoToFilePos64(zip, &at->at) != UNZ_OK || unzOpenCurrentFile(zip) != UNZ_OK)
        return onv_fail(err, ONV_ERR_FORMAT,
                        "%s in the archive is damaged, or compressed in a way that PyTorch does "
                        "not use",
                        names[which]);
    onv_status status = read_opened(zip, which, file_bytes, most, text, err);
    /* Compares the checksum, once all was read. */
    if (unzCloseCurrentFile(zip) != UNZ_OK && status == ONV_OK)
        status = onv_fail(err, ONV_ERR_FORMAT, "%s in the archive is damaged", names[which]);
    return status;
}

static void add_text(onv_program_text *text, const char *more)
{
    size_t n = strlen(more);
    memcpy(text->at + text->bytes, more, n);
    text->bytes += n;
}

/* The entry becomes the last member of the program, as save_program() writes it: there is one text to read, and to attach. */
static onv_status add_weights(unzFile zip, const place *at, uint64_t file_bytes, uint64_t most,
                              onv_program_text *text, onv_error *err)
{
    static const char member[] = ", \"" ONV_PROGRAM_WEIGHTS "\": ";
    size_t end = text->bytes;
    while (end > 0 && strchr(" \t\r\n", text->at[end - 1]) != NULL) end--;
    if (end < 2 || text->at[end - 1] != '}') return ONV_OK; /* no program, as its reader says */
    text->bytes = end - 1;
    ONV_TRY(allocate(text, end + sizeof member, most, err));
    add_text(text, member);
    ONV_TRY(read_entry(zip, WEIGHTS, at, file_bytes, most, text, err));
    ONV_TRY(allocate(text, text->bytes + 1, most, err));
    add_text(text, "}");
    return ONV_OK;
}

static onv_status read_zip(onv_source *source, uint64_t most, onv_program_text *text,
                           onv_error *err)
{
    stream s = {.source = source};
    zlib_filefunc64_def calls = {.zopen64_file = stream_open,
                                 .zread_file = stream_read,
                                 .ztell64_file = stream_tell,
                                 .zseek64_file = stream_seek,
                                 .zclose_file = stream_close,
                                 .zerror_file = stream_error,
                                 .opaque = &s};
    place places[N_ENTRIES] = {0};
    unzFile zip = unzOpen2_64("", &calls);
    if (zip == NULL)
        return onv_fail(err, ONV_ERR_FORMAT, "the zip archive is damaged or incomplete");
    onv_status status = find_entries(zip, places, err);
    if (status == ONV_OK)
        status = read_entry(zip, PROGRAM, &places[PROGRAM], source->bytes, most, text, err);
    if (status == ONV_OK && places[WEIGHTS].is_there)
        status = add_weights(zip, &places[WEIGHTS], source->bytes, most, text, err);
    unzClose(zip);
    return status;
}

/* --- gzip, and text as it is --------------------------------------------------------------------- */

void *onv_program_zalloc(void *opaque, unsigned items, unsigned size)
{
    (void)opaque;
    return onv_heap_calloc(items, size);
}

void onv_program_zfree(void *opaque, void *memory)
{
    (void)opaque;
    onv_heap_free(memory);
}

/* Makes the whole of a file that inflate has been given a part of. */
static onv_status inflate_all(z_stream *z, onv_source *source, uint64_t most,
                              onv_program_text *text, onv_error *err)
{
    enum { PART = 64 << 10 };
    uint64_t at = 0, room = LEAST_TEXT;
    ONV_TRY(allocate(text, room, most, err));
    for (int code = Z_OK; code != Z_STREAM_END;) {
        if (z->avail_in == 0) {
            const unsigned char *data;
            uint64_t left = source->bytes - at, part = left < PART ? left : PART;
            if (part == 0) return onv_fail(err, ONV_ERR_FORMAT, "the gzip data ends too early");
            ONV_TRY(onv_source_view(source, at, part, &data, err));
            z->next_in = data;
            z->avail_in = (uInt)part;
            at += part;
        }
        if (text->bytes == room) {
            uint64_t more = room < most / 2 ? 2 * room : room < most ? most : room + 1;
            ONV_TRY(allocate(text, more, most, err));
            room = more;
        }
        uint64_t left = room - text->bytes;
        uInt part = left < (1 << 20) ? (uInt)left : 1 << 20;
        z->next_out = (Bytef *)text->at + text->bytes;
        z->avail_out = part;
        code = inflate(z, Z_NO_FLUSH);
        if (code == Z_MEM_ERROR) return onv_fail_memory(err);
        if (code != Z_OK && code != Z_STREAM_END)
            return onv_fail(err, ONV_ERR_FORMAT, "the gzip data is damaged");
        text->bytes += part - z->avail_out;
        ONV_WORK(1 + (part - z->avail_out) / WORK_BYTES);
    }
    return ONV_OK;
}

static onv_status read_gzip(onv_source *source, uint64_t most, onv_program_text *text,
                            onv_error *err)
{
    z_stream z = {.zalloc = onv_program_zalloc, .zfree = onv_program_zfree};
    if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) return onv_fail_memory(err);
    onv_status status = inflate_all(&z, source, most, text, err);
    inflateEnd(&z);
    return status;
}

static onv_status read_plain(onv_source *source, uint64_t most, onv_program_text *text,
                             onv_error *err)
{
    const unsigned char *data;
    ONV_TRY(allocate(text, source->bytes, most, err));
    ONV_WORK(1 + source->bytes / WORK_BYTES);
    ONV_TRY(onv_source_view(source, 0, source->bytes, &data, err));
    memcpy(text->at, data, (size_t)source->bytes);
    text->bytes = (size_t)source->bytes;
    return ONV_OK;
}

onv_status onv_program_text_read(onv_source *source, uint64_t most_bytes, onv_program_text *text,
                                 onv_error *err)
{
    const unsigned char *head;
    size_t bytes = source->bytes < ONV_SOURCE_HEAD ? (size_t)source->bytes : ONV_SOURCE_HEAD;
    *text = (onv_program_text){0};
    ONV_TRY(onv_source_view(source, 0, bytes, &head, err));
    if (is_zip(head, bytes)) return read_zip(source, most_bytes, text, err);
    if (is_gzip(head, bytes)) return read_gzip(source, most_bytes, text, err);
    if (is_json(head, bytes)) return read_plain(source, most_bytes, text, err);
    const char *guess = onv_source_guess(head, bytes);
    return onv_fail(err, ONV_ERR_FORMAT,
                    "expected a program of PyTorch (a .pt2 archive, or its JSON), found %s",
                    guess != NULL ? guess : "other data");
}
