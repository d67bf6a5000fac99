/* Finds the interpreter in a process, and a thread's frames in it. */
#include "triggers/python.h"
#include "triggers/mappings.h"
#include "triggers/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TABLE_WORDS = 49,
    MOST_IMAGES = 8, /* that may hold the interpreter */
};

static const struct python_layout layout_311 = {.interpreters = 40,
                                                .interpreter_next = 0,
                                                .threads = 16,
                                                .thread_next = 8,
                                                .thread_id = 152,
                                                .native_id = 160,
                                                .frame = 56,
                                                .by_cframe = 1,
                                                .cframe = 8,
                                                .previous = 48,
                                                .code = 32,
                                                .instruction = 56,
                                                .owner = 69};
static const struct trg_python_code code_311 = {
    .filename = 112, .name = 128, .lines = 136, .first_line = 72, .bytes = 184, .ascii = 48};

static const struct python_layout layout_312 = {.interpreters = 40,
                                                .interpreter_next = 0,
                                                .threads = 72,
                                                .thread_next = 8,
                                                .thread_id = 136,
                                                .native_id = 144,
                                                .frame = 56,
                                                .by_cframe = 1,
                                                .cframe = 0,
                                                .previous = 8,
                                                .code = 0,
                                                .instruction = 56,
                                                .owner = 70};
static const struct trg_python_code code_312 = {
    .filename = 112, .name = 128, .lines = 136, .first_line = 68, .bytes = 192, .ascii = 40};

/* Where in the table of offsets, in words, each of them is. 3.14 has more words between them. */
struct table {
    unsigned thread, frame, code;
};
static const struct table table_313 = {.thread = 19, .frame = 28, .code = 34};
static const struct table table_314 = {.thread = 22, .frame = 31, .code = 39};

/* A structure of the interpreter is no larger. */
static bool are_offsets(const uint64_t *words)
{
    for (size_t i = 3; i < TABLE_WORDS; i++)
        if (words[i] > 1 << 24)
            return false;
    return true;
}

/* From 3.13 on. The build without the GIL has other objects, and code of each thread's own. */
static bool read_table(int memory, struct trg_python *python, const struct table *table)
{
    uint64_t words[TABLE_WORDS];
    const uint64_t *thread = words + table->thread, *frame = words + table->frame,
                   *code = words + table->code;

    if (!trg_memory_read(memory, python->target.runtime, words, sizeof(words)) ||
        memcmp(words, "xdebugpy", 8) || words[1] != python->version || words[2] || !are_offsets(words))
        return false;
    python->target.at = (struct python_layout){.interpreters = (uint32_t)words[5],
                                               .interpreter_next = (uint32_t)words[8],
                                               .threads = (uint32_t)words[9],
                                               .thread_next = (uint32_t)thread[2],
                                               .frame = (uint32_t)thread[4],
                                               .thread_id = (uint32_t)thread[5],
                                               .native_id = (uint32_t)thread[6],
                                               .previous = (uint32_t)frame[1],
                                               .code = (uint32_t)frame[2],
                                               .instruction = (uint32_t)frame[3],
                                               .owner = (uint32_t)frame[5]};
    python->code = (struct trg_python_code){.filename = (uint32_t)code[1],
                                            .name = (uint32_t)code[3],
                                            .lines = (uint32_t)code[4],
                                            .first_line = (uint32_t)code[5],
                                            .bytes = (uint32_t)code[9],
                                            .ascii = 40};
    return true;
}

static bool read_layout(int memory, struct trg_python *python)
{
    switch (python->version >> 16) {
    case 0x30b:
        python->target.at = layout_311;
        python->code = code_311;
        return true;
    case 0x30c:
        python->target.at = layout_312;
        python->code = code_312;
        return true;
    case 0x30d:
        return read_table(memory, python, &table_313);
    case 0x30e:
        return read_table(memory, python, &table_314);
    default:
        return false;
    }
}

/* The interpreter in the image at `base`. */
static bool find_in(int memory, uint64_t base, struct trg_python *python)
{
    uint64_t version = trg_memory_symbol(memory, base, "Py_Version"), value;

    if (!version || !trg_memory_read(memory, version, &value, sizeof(value)))
        return false;
    *python = (struct trg_python){.version = (uint32_t)value,
                                  .target.runtime = trg_memory_symbol(memory, base, "_PyRuntime"),
                                  .code_type = trg_memory_symbol(memory, base, "PyCode_Type")};
    return python->target.runtime && python->code_type && read_layout(memory, python);
}

/* Where the interpreter may be: the program, and what is named as Python's library is. */
struct images {
    char exe[PATH_MAX];

    uint64_t bases[MOST_IMAGES];

    size_t n;
};

static bool note_image(void *ctx, const struct trg_mapping *m)
{
    struct images *images = ctx;

    if (!m->offset && *m->name && (!strcmp(m->name, images->exe) || strstr(m->name, "/libpython3.")))
        images->bases[images->n++] = m->start;
    return images->n == MOST_IMAGES;
}

static void find_images(pid_t pid, struct images *images)
{
    struct trg_mapping last;
    char path[64];
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    length = readlink(path, images->exe, sizeof(images->exe) - 1);
    images->exe[length > 0 ? length : 0] = '\0';
    images->n = 0;
    trg_find_mapping(pid, note_image, images, &last);
}

bool trg_python_find(pid_t pid, struct trg_python *python)
{
    struct images images;
    bool found = false;
    int memory;

    *python = (struct trg_python){0};
    find_images(pid, &images);
    memory = images.n ? trg_memory_open(pid) : -1;
    for (size_t i = 0; memory >= 0 && i < images.n && !found; i++)
        found = find_in(memory, images.bases[i], python);
    if (memory >= 0)
        close(memory);
    return found;
}

static uint64_t pointer_at(int memory, uint64_t at)
{
    uint64_t value;

    return at && trg_memory_read(memory, at, &value, sizeof(value)) ? value : 0;
}

/* The state of a thread; 0: it has none. */
static uint64_t find_thread(int memory, const struct trg_python *python, pid_t native_id)
{
    const struct python_layout *at = &python->target.at;
    uint64_t interpreter = pointer_at(memory, python->target.runtime + at->interpreters);

    for (int i = 0; i < PYTHON_INTERPRETERS && interpreter; i++) {
        uint64_t thread = pointer_at(memory, interpreter + at->threads);

        for (int k = 0; k < PYTHON_THREADS && thread; k++) {
            if (pointer_at(memory, thread + at->native_id) == (uint64_t)native_id)
                return thread;
            thread = pointer_at(memory, thread + at->thread_next);
        }
        interpreter = pointer_at(memory, interpreter + at->interpreter_next);
    }
    return 0;
}

size_t trg_python_frames(int memory, const struct trg_python *python, pid_t native_id,
                         struct trg_python_frame *frames)
{
    const struct python_layout *at = &python->target.at;
    uint64_t thread = find_thread(memory, python, native_id);
    uint64_t frame = thread ? pointer_at(memory, thread + at->frame) : 0;
    size_t n = 0;

    if (frame && at->by_cframe)
        frame = pointer_at(memory, frame + at->cframe);
    for (; n < PYTHON_FRAMES && frame; n++) {
        unsigned char owner;

        if (!trg_memory_read(memory, frame + at->owner, &owner, sizeof(owner)))
            break;
        frames[n] = (struct trg_python_frame){.instruction = pointer_at(memory, frame + at->instruction)};
        if (owner < PYTHON_OWNED_BY_C)
            frames[n].code = pointer_at(memory, frame + at->code) & PYTHON_OBJECT_MASK;
        frame = pointer_at(memory, frame + at->previous);
    }
    return n;
}
