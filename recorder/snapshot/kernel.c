/* The kernel's code in a snapshot: kcore_dir, and the record of its mapping that perf wants. */
#include "base/log.h"
#include "recorder/code/kcore.h"
#include "recorder/snapshot/snapshot_impl.h"

#include <stdlib.h>
#include <string.h>

bool snap_wants_kernel(const struct rec_facts *facts)
{
    /* Samples need names, no code. */
    return !facts->records && !facts->recorded.at[0].attr.exclude_kernel && !rec_kcore_probe(NULL);
}

/* As perf makes it (tools/perf/util/synthetic-events.c): of no process, named after the symbol whose address
 * tells where the kernel was loaded. */
static int write_map(struct snap *s, const struct rec_kernel_text *text, struct st_error *err)
{
    struct {
        struct perf_event_header header;

        uint32_t pid, tid;

        uint64_t addr, len, pgoff;

        char name[24];

        struct rec_trailer trailer;
    } map = {
        .header = {.type = PERF_RECORD_MMAP, .misc = PERF_RECORD_MISC_KERNEL, .size = sizeof(map)},
        .pid = (uint32_t)-1,
        .name = "[kernel.kallsyms]_text",
        .trailer = {.pid = (uint32_t)-1, .id = s->ids[SNAP_STATE]},
    };

    map.addr = map.pgoff = text->text;
    map.len = text->etext - text->text;
    return pd_writer_record(s->w, &map.header, err);
}

/* A record as the kernel wrote it. */
static struct rec_code_change change_of(const struct perf_event_header *record)
{
    struct rec_code_change change = {0};
    const uint8_t *body = (const uint8_t *)(record + 1);
    uint16_t n;

    if (record->type != PERF_RECORD_TEXT_POKE || record->size < sizeof(*record) + 12)
        return change;
    memcpy(&n, body + 8, sizeof(n));
    if (n > record->size - sizeof(*record) - 12)
        return change;
    memcpy(&change.address, body, sizeof(change.address));
    change.old = body + 12; /* behind the lengths of the old and the new bytes */
    change.n = n;
    return change;
}

int snap_write_kernel(struct snap *s, const struct rec_stored *list, size_t n, struct st_error *err)
{
    int dir = pd_writer_kcore_dir(s->w, err);
    ST_VEC(struct rec_code_change) changes = {0};
    struct rec_kernel_text text;
    int rc = dir < 0 ? dir : rec_kernel_text(&text, err);

    if (!rc)
        rc = write_map(s, &text, err);
    for (size_t i = 0; !rc && i < n; i++) {
        struct rec_code_change change = change_of(list[i].record);

        if (change.n && st_vec_push(&changes, change))
            rc = st_nomem(err, "the changes of the kernel's code");
    }
    if (!rc)
        rc = rec_kcore_write(dir, changes.at, changes.n, err);
    st_vec_free(&changes);
    return rc;
}

int snap_write_kernel_map(struct snap *s, struct st_error *err)
{
    struct rec_kernel_text text;

    return rec_kernel_text(&text, NULL) ? 0 : write_map(s, &text, err);
}
