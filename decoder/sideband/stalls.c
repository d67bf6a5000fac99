/* Stall records and the names of kernel addresses that go with them (base/stall_record.h). */
#include "base/safetext.h"
#include "decoder/sideband/sideband_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int bad(const struct pd_record *r, const char *why, struct st_error *err)
{
    return st_fail(err, ST_EBADFILE, "%s: at offset 0x%" PRIx64 ": %s of %s: %s", r->file, r->offset,
                   pd_record_name(r->header->type), ST_STALL_EVENT_NAME, why);
}

/* Counts and strings must lie within their arrays: whoever reads the record trusts them. */
static int check_stall(const struct st_stall_record *s)
{
    return s->kstack_n <= ST_STALL_KSTACK && s->ustack_n <= ST_STALL_USTACK &&
           s->wstack_n <= ST_STALL_WSTACK && s->extra_n <= ST_STALL_EXTRA;
}

/* The last string may come without its end. */
static void end_extra(struct st_stall_record *s)
{
    if (s->extra_n && s->extra[s->extra_n - 1] && s->extra_n < ST_STALL_EXTRA)
        s->extra_n++;
    if (s->extra_n)
        s->extra[s->extra_n - 1] = '\0';
}

static int take_stall(struct sb_context *c, const struct pd_record *r, const struct pd_sample *sample,
                      struct st_error *err)
{
    struct dec_stall_sample stall = {.time = r->id.time};
    struct dec_thread *thread;

    if (sample->raw_size < sizeof(stall.record))
        return bad(r, "a stall record that is too short", err);
    memcpy(&stall.record, sample->raw, sizeof(stall.record));
    if (stall.record.version != ST_STALL_VERSION)
        return bad(r, "a stall record of a version that this stalltrap does not know", err);
    if (!check_stall(&stall.record))
        return bad(r, "a stall record with more frames than it has room for", err);
    stall.record.comm[sizeof(stall.record.comm) - 1] = '\0';
    stall.record.waker_comm[sizeof(stall.record.waker_comm) - 1] = '\0';
    stall.record.waker_irq[sizeof(stall.record.waker_irq) - 1] = '\0';
    stall.record.next_comm[sizeof(stall.record.next_comm) - 1] = '\0';
    end_extra(&stall.record);
    thread = sb_thread(c, (int32_t)stall.record.pid, (int32_t)stall.record.tid, (int32_t)stall.record.cpu);
    if (!thread || (thread->names.at[0].name[0] == ':' && sb_name(thread, 0, stall.record.comm)))
        return st_nomem(err, "a stall record");
    return st_vec_push(&c->sb->stalls, stall) ? st_nomem(err, "a stall record") : 0;
}

static int take_names(struct sb_context *c, const struct pd_record *r, const struct pd_sample *sample,
                      struct st_error *err)
{
    struct st_symbol_record head;
    const char *at = (const char *)sample->raw + sizeof(head);
    const char *end = (const char *)sample->raw + sample->raw_size;

    memcpy(&head, sample->raw, sizeof(head));
    for (unsigned i = 0; i < head.n; i++) {
        struct dec_kernel_name name;

        if ((size_t)(end - at) < 17 || strnlen(at + 16, (size_t)(end - at) - 16) == (size_t)(end - at) - 16)
            return bad(r, "a symbol record that ends too early", err);
        memcpy(&name.address, at, 8);
        memcpy(&name.start, at + 8, 8);
        name.name = at + 16;
        at += 16 + strlen(name.name) + 1;
        if (st_vec_push(&c->sb->kernel_names, name))
            return st_nomem(err, "the names of kernel addresses");
    }
    return 0;
}

/* "fd=3 count=12": the strings, a space between them. A text that the target wrote may hold anything. */
static int take_mark(struct sb_context *c, const struct pd_record *r, const struct pd_sample *sample,
                     struct st_error *err)
{
    struct dec_notice n = {.time = r->id.time, .tid = (int32_t)r->id.tid, .cpu = (int32_t)r->id.cpu};
    char text[ST_MARK_TEXT + 1] = "";
    struct st_mark_record m;
    size_t used = 0;
    char *name;

    if (sample->raw_size < sizeof(m)) {
        c->sb->skipped++;
        return 0;
    }
    memcpy(&m, sample->raw, sizeof(m));
    m.name[sizeof(m.name) - 1] = '\0';
    for (size_t i = 0; i < m.text_n && i < sizeof(m.text) && used + 1 < sizeof(text); i++)
        if (m.text[i])
            text[used++] = m.text[i];
        else if (used && text[used - 1] != ' ')
            text[used++] = ' ';
    while (used && strchr(" \r\n", text[used - 1])) /* a line that was written has an end */
        text[--used] = '\0';
    st_safe_text(n.detail, sizeof(n.detail), text);
    name = strdup(m.name);
    n.name = name;
    if (!name || st_vec_push(&c->sb->mark_names, name)) {
        free(name);
        return st_nomem(err, "the trace's marks");
    }
    return st_vec_push(&c->sb->notices, n) ? st_nomem(err, "the trace's marks") : 0;
}

int sb_stall_sample(struct sb_context *c, const struct pd_record *r, struct st_error *err)
{
    struct pd_sample sample;
    uint32_t magic = 0;
    int rc = pd_record_sample(r, &sample, err);

    if (rc)
        return rc;
    if (sample.raw_size >= sizeof(struct st_symbol_record))
        memcpy(&magic, sample.raw, sizeof(magic));
    if (magic == ST_STALL_MAGIC)
        return take_stall(c, r, &sample, err);
    if (magic == ST_MARK_MAGIC)
        return take_mark(c, r, &sample, err);
    if (magic == ST_SYMBOL_MAGIC)
        return take_names(c, r, &sample, err);
    c->sb->skipped++;
    return 0;
}

static int by_address(const void *a, const void *b)
{
    const struct dec_kernel_name *x = a, *y = b;

    return x->address < y->address ? -1 : x->address > y->address;
}

void sb_sort_kernel_names(struct dec_sideband *sb)
{
    if (sb->kernel_names.n)
        qsort(sb->kernel_names.at, sb->kernel_names.n, sizeof(sb->kernel_names.at[0]), by_address);
}

const struct dec_kernel_name *dec_sideband_kernel_name(const struct dec_sideband *sb, uint64_t address)
{
    struct dec_kernel_name key = {.address = address};

    if (!sb->kernel_names.n)
        return NULL;
    return bsearch(&key, sb->kernel_names.at, sb->kernel_names.n, sizeof(key), by_address);
}
