/* libFuzzer: any bytes as a code file of the target, as the child without privilege reads it for the
 * recorder: the build id, the segments, where functions and probes are, and how places are named. */
#include "fuzz.h"

#include "recorder/code/build_id.h"
#include "recorder/snapshot/snapshot_impl.h"
#include "triggers/elf_read.h"

#include <string.h>

enum { ROOM = 65536 };

static union {
    char bytes[ROOM];

    struct trg_elf_function functions[ROOM / sizeof(struct trg_elf_function)];

    struct trg_probe_site sites[ROOM / sizeof(struct trg_probe_site)];
} answer;

/* Answers with little room, too. */
static size_t ask(int fd, st_confined_fn *fn, const void *question, size_t size)
{
    ssize_t n = fn(fd, question, size, &answer, 24);

    fuzz_must(n <= 24);
    n = fn(fd, question, size, &answer, sizeof(answer));
    fuzz_must(n <= (ssize_t)sizeof(answer));
    return n > 0 ? (size_t)n : 0;
}

static void find_texts(int fd, uint64_t size)
{
    size_t n = ask(fd, trg_elf_nearest, "outer", 6);

    fuzz_must(!n || !answer.bytes[n - 1]);
    n = ask(fd, trg_elf_needed, NULL, 0);
    fuzz_must(!n || !answer.bytes[n - 1]);
    for (uint64_t at = 0; at < size; at += size / 8 + 1) {
        n = ask(fd, trg_elf_name, &at, sizeof(at));
        fuzz_must(!n || strlen(answer.bytes) == n - 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char probe[] = "st_test\0beat";
    uint8_t of_fd[REC_BUILD_ID_MAX] = {0}, of_memory[REC_BUILD_ID_MAX] = {0};
    int fd = fuzz_file(data, size);
    size_t n = rec_build_id_of_fd(fd, of_fd);

    fuzz_must(n <= REC_BUILD_ID_MAX && rec_build_id_of_memory(data, size, of_memory) <= REC_BUILD_ID_MAX);
    fuzz_must(ask(fd, trg_elf_functions, "outer", 6) % sizeof(answer.functions[0]) == 0);
    ask(fd, trg_elf_golang, NULL, 0);
    ask(fd, snap_read_headers, NULL, 0);
    n = ask(fd, trg_elf_probes, probe, sizeof(probe)) / sizeof(answer.sites[0]);
    trg_probe_are_sound(answer.sites, n, size);
    for (size_t i = 0; i < n; i++)
        fuzz_must(answer.sites[i].n <= TRG_PROBE_ARGUMENTS);
    find_texts(fd, size);
    close(fd);
    return 0;
}
