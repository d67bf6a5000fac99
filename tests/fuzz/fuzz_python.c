/* libFuzzer: any bytes as the memory of a process: its symbols, and the frames of a Python thread in it. */
#include "fuzz.h"

#include "triggers/memory.h"
#include "triggers/python.h"

#include <stdio.h>
#include <sys/mman.h>

static int memory = -1;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    memory = memfd_create("fuzz", MFD_CLOEXEC);
    fuzz_must(memory >= 0);
    return 0;
}

/* Of 3.11, or as small as the input may well be. */
static struct trg_python python_of(uint8_t first)
{
    struct trg_python small = {
        .target.at = {.interpreters = 8,
                      .interpreter_next = 0,
                      .threads = 8,
                      .thread_next = 0,
                      .native_id = 8,
                      .frame = 16,
                      .by_cframe = first & 1,
                      .cframe = 8,
                      .previous = 0,
                      .code = 8,
                      .instruction = 16,
                      .owner = 24},
        .code = {.filename = 16, .name = 24, .lines = 32, .first_line = 40, .bytes = 48},
        .code_type = 8};

    small.code.ascii = first & 2 ? 48 : 40;
    return small;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trg_python python = python_of(size ? data[0] : 0);
    struct trg_python_frame frames[PYTHON_FRAMES];
    char text[512];
    size_t n;

    fuzz_must(!ftruncate(memory, 0) && pwrite(memory, data, size, 0) == (ssize_t)size);
    trg_memory_symbol(memory, 0, "Py_Version");
    n = trg_python_frames(memory, &python, 1, frames);
    fuzz_must(n <= PYTHON_FRAMES);
    frames[n ? n - 1 : 0] = (struct trg_python_frame){.code = 8, .instruction = 64};
    for (size_t i = 0; i < (n ? n : 1); i++)
        fuzz_must(!trg_python_text(memory, &python, &frames[i], text, sizeof(text)) ||
                  strlen(text) < sizeof(text));
    return 0;
}
