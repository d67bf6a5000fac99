/* libFuzzer: any bytes as a code file of the target, as the recorder reads it: the build id, and where a
 * function is. */
#include "fuzz.h"

#include "recorder/build_id.h"
#include "triggers/functions.h"
#include "triggers/waits.h"

#include <stdio.h>
#include <sys/mman.h>

/* As the places are named in which a process waits, that has mapped the file. */
static void name_places(int fd, size_t size)
{
    char text[256];
    char *mapped = size ? mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) : MAP_FAILED;

    if (mapped == MAP_FAILED)
        return;
    for (size_t at = 0; at < size; at += size / 8 + 1) {
        trg_name_place((uint32_t)getpid(), (uint64_t)(mapped + at), text, sizeof(text));
        fuzz_must(strlen(text) < sizeof(text));
    }
    munmap(mapped, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct st_target target = {.kind = ST_TARGET_NONE};
    const struct trg_config config = {.target = &target};
    uint8_t of_fd[REC_BUILD_ID_MAX] = {0}, of_memory[REC_BUILD_ID_MAX] = {0};
    struct trg_function f = {0};
    struct st_error err = {0};
    char what[64];
    int fd = fuzz_file(data, size);
    size_t n = rec_build_id_of_fd(fd, of_fd);

    fuzz_must(n <= REC_BUILD_ID_MAX && rec_build_id_of_memory(data, size, of_memory) <= REC_BUILD_ID_MAX);
    snprintf(what, sizeof(what), "/proc/self/fd/%d!outer", fd);
    if (!trg_find_function(what, &config, &f, &err)) {
        fuzz_must(!f.kernel && f.places.n);
        trg_function_free(&f);
    } else {
        fuzz_must(err.text[0]);
    }
    name_places(fd, size);
    close(fd);
    return 0;
}
