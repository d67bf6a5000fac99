/* The trigger language: any text is taken or refused with a message, and nothing is left behind. */
#include "triggers/language/parse.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void must(int holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 1);
    struct st_error err = {0};
    struct trg_spec spec;

    if (!text)
        return 0;
    memcpy(text, data, size);
    if (!trg_parse(text, &spec, &err)) {
        must(spec.kind && !strcmp(spec.text, text) && !err.text[0]);
        must(spec.kind->hits || spec.worst || spec.threshold_ns);
        trg_spec_free(&spec);
    } else {
        must(err.code == ST_EUSAGE && err.text[0] && !spec.text && !spec.options);
        for (const char *c = err.text; *c; c++) /* nothing that a terminal would obey */
            must(*c == '\n' || (unsigned char)*c >= 0x20);
    }
    free(text);
    return 0;
}
