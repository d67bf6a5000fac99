/* libFuzzer: any bytes as a recording, decoded to the end: side-band, samples, trace, model, and the
 * database. */
#include "fuzz.h"

#include "base/log.h"
#include "decoder/cmd/worker.h"

#include <stdio.h>

/* The process that would give the decoder its files (decoder/cmd/serve.c) is not there. */
int __wrap_dec_ask(enum dec_request_kind what);
void __wrap_dec_tell(const char *line);

int __wrap_dec_ask(enum dec_request_kind what)
{
    (void)what;
    return memfd_create("fuzz.db", MFD_CLOEXEC);
}

void __wrap_dec_tell(const char *line)
{
    fuzz_must(strlen(line) < PATH_MAX);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    st_log_level(ST_LOG_QUIET);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum decode_listing listings[] = {DECODE_NO_LISTING, DECODE_CALLS, DECODE_SAMPLES,
                                                   DECODE_BRANCHES};
    int fd = fuzz_file(data, size);
    struct decode_options options = {.listing = listings[size % 4], .inlined = false, .bare = size & 4};
    struct st_error err = {0};
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    options.input = path;
    if (options.listing == DECODE_NO_LISTING)
        options.output = "fuzz.db";
    fuzz_must(!decode_run(&options, &err) || err.text[0]);
    close(fd);
    return 0;
}
