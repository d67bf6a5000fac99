/* Sizes and strings of each record type: <linux/perf_event.h>, tools/lib/perf/include/perf/event.h. */
#include "perfdata/shape.h"

#include <string.h>

#define HEADER sizeof(struct perf_event_header)

struct shape {
    uint16_t least;

    uint16_t string; /* offset of a string that ends within the record */
};

/* Strings have at least one padded word. */
static const struct shape kernel_shapes[] = {
    [PERF_RECORD_MMAP] = {HEADER + 40, HEADER + 32},
    [PERF_RECORD_LOST] = {HEADER + 16, 0},
    [PERF_RECORD_COMM] = {HEADER + 16, HEADER + 8},
    [PERF_RECORD_EXIT] = {HEADER + 24, 0},
    [PERF_RECORD_THROTTLE] = {HEADER + 24, 0},
    [PERF_RECORD_UNTHROTTLE] = {HEADER + 24, 0},
    [PERF_RECORD_FORK] = {HEADER + 24, 0},
    [PERF_RECORD_READ] = {HEADER + 8, 0},
    [PERF_RECORD_SAMPLE] = {HEADER, 0},
    [PERF_RECORD_MMAP2] = {HEADER + 72, HEADER + 64},
    [PERF_RECORD_AUX] = {HEADER + 24, 0},
    [PERF_RECORD_ITRACE_START] = {HEADER + 8, 0},
    [PERF_RECORD_LOST_SAMPLES] = {HEADER + 8, 0},
    [PERF_RECORD_SWITCH] = {HEADER, 0},
    [PERF_RECORD_SWITCH_CPU_WIDE] = {HEADER + 8, 0},
    [PERF_RECORD_NAMESPACES] = {HEADER + 16, 0},
    [PERF_RECORD_KSYMBOL] = {HEADER + 24, HEADER + 16},
    [PERF_RECORD_BPF_EVENT] = {HEADER + 16, 0},
    [PERF_RECORD_CGROUP] = {HEADER + 16, HEADER + 8},
    [PERF_RECORD_TEXT_POKE] = {HEADER + 16, 0},
    [PERF_RECORD_AUX_OUTPUT_HW_ID] = {HEADER + 8, 0},
};

static const struct shape user_shapes[] = {
    [PD_RECORD_HEADER_ATTR - 64] = {HEADER + PERF_ATTR_SIZE_VER0, 0},
    [PD_RECORD_HEADER_TRACING_DATA - 64] = {HEADER + 4, 0},
    [PD_RECORD_HEADER_BUILD_ID - 64] = {sizeof(struct pd_build_id_entry), 0},
    [PD_RECORD_ID_INDEX - 64] = {HEADER + 8, 0},
    [PD_RECORD_AUXTRACE_INFO - 64] = {sizeof(struct pd_auxtrace_info), 0},
    [PD_RECORD_AUXTRACE - 64] = {sizeof(struct pd_auxtrace), 0},
    [PD_RECORD_AUXTRACE_ERROR - 64] = {HEADER + 32, 0},
    [PD_RECORD_THREAD_MAP - 64] = {HEADER + 8, 0},
    [PD_RECORD_EVENT_UPDATE - 64] = {sizeof(struct pd_event_update), 0},
    [PD_RECORD_TIME_CONV - 64] = {HEADER + 24, 0},
    [PD_RECORD_HEADER_FEATURE - 64] = {sizeof(struct pd_header_feature), 0},
    [PD_RECORD_COMPRESSED2 - 64] = {sizeof(struct pd_compressed2), 0},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct shape shape_of(uint32_t type)
{
    struct shape shape = {0, 0};

    if (type < COUNT(kernel_shapes))
        shape = kernel_shapes[type];
    else if (type >= 64 && type - 64 < COUNT(user_shapes))
        shape = user_shapes[type - 64];
    if (shape.least < HEADER)
        shape.least = HEADER;
    return shape;
}

size_t pd_least_size(uint32_t type)
{
    return shape_of(type).least;
}

size_t pd_string_offset(uint32_t type)
{
    return shape_of(type).string;
}

static const char *namespaces_problem(const struct perf_event_header *record)
{
    const uint64_t *words = (const uint64_t *)(record + 1);

    return words[1] > (record->size - HEADER - 16) / 16 ? "it is too small for its count of namespaces"
                                                        : NULL;
}

static const char *text_poke_problem(const struct perf_event_header *record)
{
    const uint8_t *lengths = (const uint8_t *)record + HEADER + 8;
    uint16_t old_len, new_len;

    memcpy(&old_len, lengths, 2);
    memcpy(&new_len, lengths + 2, 2);
    return HEADER + 12u + old_len + new_len > record->size ? "it is too small for its code bytes" : NULL;
}

const char *pd_shape_problem(const struct perf_event_header *record)
{
    struct shape shape = shape_of(record->type);

    if (record->size < shape.least)
        return "it is too small for its fields";
    if (shape.string && !memchr((const char *)record + shape.string, '\0', record->size - shape.string))
        return "its name has no end within it";
    if (record->type == PERF_RECORD_NAMESPACES)
        return namespaces_problem(record);
    if (record->type == PERF_RECORD_TEXT_POKE)
        return text_poke_problem(record);
    return NULL;
}
