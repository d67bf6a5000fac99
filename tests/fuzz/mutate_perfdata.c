/* Changes a perf.data record by record: one is taken out, doubled, exchanged with its neighbour, or changed
 * within, and the size of the data follows. */
#include "fuzz.h"

#include "perfdata/format.h"

enum { MOST_RECORDS = 512 };

struct layout {
    size_t start, end; /* of the records */

    bool pipe;

    size_t n, at[MOST_RECORDS + 1];
};

static bool find_records(const uint8_t *data, size_t size, struct layout *l)
{
    struct pd_file_header head;
    struct perf_event_header h;
    uint64_t length;

    memset(l, 0, sizeof(*l));
    if (size < sizeof(struct pd_pipe_header) || memcmp(data, PD_MAGIC, 8))
        return false;
    memcpy(&length, data + 8, sizeof(length));
    l->pipe = length == sizeof(struct pd_pipe_header);
    l->start = sizeof(struct pd_pipe_header);
    l->end = size;
    if (!l->pipe) {
        if (size < sizeof(head))
            return false;
        memcpy(&head, data, sizeof(head));
        if (head.data.offset > size || head.data.size > size - head.data.offset)
            return false;
        l->start = head.data.offset;
        l->end = head.data.offset + head.data.size;
    }
    for (size_t at = l->start; l->n < MOST_RECORDS && l->end - at >= sizeof(h); at += h.size) {
        memcpy(&h, data + at, sizeof(h));
        if (h.size < sizeof(h) || h.size > l->end - at)
            break;
        l->at[l->n++] = at;
        l->at[l->n] = at + h.size;
    }
    return l->n > 0;
}

/* The bytes [from, to) become `bytes`; what the header says of the data follows, what lies behind it moves.
 */
static size_t replace(uint8_t *data, size_t size, size_t most, const struct layout *l, size_t from, size_t to,
                      const void *bytes, size_t n)
{
    struct pd_file_header head;
    size_t grown = size - (to - from) + n;

    if (grown > most)
        return size;
    memmove(data + from + n, data + to, size - to);
    memcpy(data + from, bytes, n);
    if (!l->pipe) {
        memcpy(&head, data, sizeof(head));
        head.data.size += n - (to - from);
        memcpy(data, &head, sizeof(head));
    }
    return grown;
}

static size_t change_within(uint8_t *data, size_t size, const struct layout *l, size_t i, unsigned *seed)
{
    const size_t head = sizeof(struct perf_event_header), at = l->at[i], n = l->at[i + 1] - at;

    if (rand_r(seed) % 8 == 0) { /* type, misc or size */
        fuzz_number(data + at + (uint64_t)rand_r(seed) % 4 * 2, 2, seed);
    } else if (n > head && rand_r(seed) % 2) {
        LLVMFuzzerMutate(data + at + head, n - head, n - head);
    } else if (n >= head + 8) {
        size_t width = rand_r(seed) % 2 ? 4 : 8;

        fuzz_number(data + at + head + (uint64_t)rand_r(seed) % ((n - head) / width) * width, width, seed);
    }
    return size;
}

/* The header of the file, its attributes and features. */
static size_t change_around(uint8_t *data, size_t size, const struct layout *l, unsigned *seed)
{
    size_t behind = size - l->end, at = (size_t)rand_r(seed) % (l->start + behind);

    at = at < l->start ? at : at - l->start + l->end;
    at &= ~(size_t)7;
    if (size - at >= 8)
        fuzz_number(data + at, 8, seed);
    return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    struct layout l;
    uint8_t *record;
    size_t i, n;
    int what = rand_r(&seed) % 10;

    if (what == 0 || !find_records(data, size, &l))
        return LLVMFuzzerMutate(data, size, most);
    i = (size_t)rand_r(&seed) % l.n;
    n = l.at[i + 1] - l.at[i];
    if (what == 1)
        return change_around(data, size, &l, &seed);
    if (what == 2 && l.n > 1)
        return replace(data, size, most, &l, l.at[i], l.at[i + 1], "", 0);
    if (what > 4)
        return change_within(data, size, &l, i, &seed);
    record = malloc(n);
    if (!record)
        return size;
    memcpy(record, data + l.at[i], n);
    if (what == 4 && i + 1 < l.n) { /* with its neighbour */
        size_t next = l.at[i + 2] - l.at[i + 1];

        memmove(data + l.at[i], data + l.at[i + 1], next);
        memcpy(data + l.at[i] + next, record, n);
    } else {
        i = (size_t)rand_r(&seed) % (l.n + 1);
        size = replace(data, size, most, &l, l.at[i], l.at[i], record, n);
    }
    free(record);
    return size;
}
