/* Takes samples apart: <linux/perf_event.h>, PERF_RECORD_SAMPLE. */
#include "perfdata/events.h"
#include "perfdata/part.h"

#include <string.h>

/* Newer than the headers of some systems. */
#define BRANCH_COUNTERS (1ULL << 19)

static bool take(struct pd_words *w, uint64_t *value)
{
    if (w->at == w->end)
        return false;
    *value = *w->at++;
    return true;
}

static bool take_many(struct pd_words *w, uint64_t n, const uint64_t **words)
{
    if (n > (uint64_t)(w->end - w->at))
        return false;
    *words = w->at;
    w->at += n;
    return true;
}

/* `n` bytes, padded to whole words. */
static bool take_bytes(struct pd_words *w, uint64_t n, const void **bytes)
{
    const uint64_t *words;

    if (n > (uint64_t)(w->end - w->at) * 8 || !take_many(w, (n + 7) / 8, &words))
        return false;
    *bytes = words;
    return true;
}

/* Counter values (perf_event_open(2), PERF_FORMAT_*): nothing here uses them. */
static bool skip_read(struct pd_words *w, uint64_t format)
{
    const uint64_t ids = format & (PERF_FORMAT_ID | PERF_FORMAT_LOST);
    const uint64_t times = format & (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
    uint64_t each = 1 + (uint64_t)__builtin_popcountll(ids);
    uint64_t head = (uint64_t)__builtin_popcountll(times);
    uint64_t n = 1;
    const uint64_t *skipped;

    if (format & PERF_FORMAT_GROUP && !take(w, &n))
        return false;
    if (n > UINT64_MAX / 8)
        return false;
    return take_many(w, head, &skipped) && take_many(w, n * each, &skipped);
}

static bool take_raw(struct pd_words *w, struct pd_sample *s)
{
    const void *all;
    uint32_t size;

    if (w->at == w->end)
        return false;
    memcpy(&size, w->at, sizeof(size));
    if (!take_bytes(w, (uint64_t)size + sizeof(size), &all))
        return false;
    s->raw = (const char *)all + sizeof(size);
    s->raw_size = size;
    return true;
}

static bool take_branches(struct pd_words *w, const struct perf_event_attr *attr, struct pd_sample *s)
{
    const uint64_t each = sizeof(struct perf_branch_entry) / 8;
    const uint64_t *words, *counters;
    uint64_t n, index;

    if (!take(w, &n) || n > 65536 / 8)
        return false;
    if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX && !take(w, &index))
        return false;
    if (!take_many(w, n * each, &words))
        return false;
    if (attr->branch_sample_type & BRANCH_COUNTERS && !take_many(w, n, &counters))
        return false;
    s->branches = (const void *)words;
    s->nbranches = n;
    return true;
}

static bool take_regs(struct pd_words *w, uint64_t mask, uint64_t *abi, const uint64_t **regs)
{
    if (!take(w, abi))
        return false;
    return *abi == PERF_SAMPLE_REGS_ABI_NONE || take_many(w, (uint64_t)__builtin_popcountll(mask), regs);
}

static bool take_stack(struct pd_words *w, struct pd_sample *s)
{
    uint64_t room;

    if (!take(w, &room))
        return false;
    if (room == 0)
        return true;
    if (!take_bytes(w, room, &s->user_stack) || !take(w, &s->user_stack_size))
        return false;
    return s->user_stack_size <= room;
}

static bool take_callchain(struct pd_words *w, struct pd_sample *s)
{
    return take(w, &s->ncallchain) && take_many(w, s->ncallchain, &s->callchain);
}

/* WEIGHT or WEIGHT_STRUCT, DATA_SRC, TRANSACTION: one word each. */
static bool skip_words(struct pd_words *w, uint64_t bits)
{
    const uint64_t *words;

    return take_many(w, (uint64_t)__builtin_popcountll(bits), &words);
}

static bool take_aux(struct pd_words *w, struct pd_sample *s)
{
    return take(w, &s->aux_size) && take_bytes(w, s->aux_size, &s->aux);
}

/* Returns NULL, or the field that goes beyond the end. */
static const char *take_all(struct pd_words *w, const struct perf_event_attr *attr, struct pd_sample *s)
{
    const uint64_t type = attr->sample_type;
    const uint64_t one_word = PERF_SAMPLE_WEIGHT_TYPE | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION;
    const uint64_t late_word =
        PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE;
    struct pd_sample_id id;
    const uint64_t *regs;
    uint64_t abi;

    if (!pd_sample_front(w, type, &id, s))
        return "identity";
    if (type & PERF_SAMPLE_PERIOD && !take(w, &s->period))
        return "period";
    if (type & PERF_SAMPLE_READ && !skip_read(w, attr->read_format))
        return "counter values";
    if (type & PERF_SAMPLE_CALLCHAIN && !take_callchain(w, s))
        return "call chain";
    if (type & PERF_SAMPLE_RAW && !take_raw(w, s))
        return "raw data";
    if (type & PERF_SAMPLE_BRANCH_STACK && !take_branches(w, attr, s))
        return "branch stack";
    if (type & PERF_SAMPLE_REGS_USER && !take_regs(w, attr->sample_regs_user, &s->user_abi, &s->user_regs))
        return "user registers";
    if (type & PERF_SAMPLE_STACK_USER && !take_stack(w, s))
        return "user stack";
    if (!skip_words(w, type & one_word))
        return "weight or data source";
    if (type & PERF_SAMPLE_REGS_INTR && !take_regs(w, attr->sample_regs_intr, &abi, &regs))
        return "registers";
    if (!skip_words(w, type & late_word))
        return "physical address or page size";
    if (type & PERF_SAMPLE_AUX && !take_aux(w, s))
        return "AUX area";
    return NULL;
}

int pd_record_sample(const struct pd_record *record, struct pd_sample *sample, struct st_error *err)
{
    const struct perf_event_header *h = record->header;
    struct pd_words w = {(const uint64_t *)(h + 1), (const uint64_t *)((const char *)h + h->size / 8 * 8)};
    const char *beyond;

    memset(sample, 0, sizeof(*sample));
    if (h->type != PERF_RECORD_SAMPLE)
        return pd_bad_record(err, record->file, record->offset, h->type, "it is no sample");
    if (!record->event)
        return pd_bad_record(err, record->file, record->offset, h->type,
                             "it is of no event of the recording");
    if (!record->event->attr.freq)
        sample->period = record->event->attr.sample_period;
    beyond = take_all(&w, &record->event->attr, sample);
    if (!beyond)
        return 0;
    memset(sample, 0, sizeof(*sample));
    return pd_bad_record(err, record->file, record->offset, h->type,
                         "its %s goes beyond its end (its size is %u)", beyond, h->size);
}
