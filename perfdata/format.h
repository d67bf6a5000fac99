/* perf.data on disk, as far as <linux/perf_event.h> does not define it.
 * Source: Linux, tools/perf/Documentation/perf.data-file-format.txt and
 * tools/perf/util/{header,event,auxtrace}.h. */
#ifndef ST_PERFDATA_FORMAT_H
#define ST_PERFDATA_FORMAT_H

#include <linux/perf_event.h>
#include <stdint.h>

#define PD_MAGIC "PERFILE2"

struct pd_file_section {
    uint64_t offset;

    uint64_t size;
};

struct pd_file_header {
    char magic[8];

    uint64_t size; /* of this struct */

    uint64_t
        attr_size; /* of one entry of the attrs section: sizeof(perf_event_attr) + sizeof(pd_file_section) */

    struct pd_file_section attrs;

    struct pd_file_section data;

    struct pd_file_section event_types; /* unused since Linux 3.x */

    uint64_t features[4]; /* bitmap of enum pd_feature */
};

/* In pipe mode (perf record -o -) the file begins with this shorter header; attributes and features are
 * records. */
struct pd_pipe_header {
    char magic[8];

    uint64_t size; /* 16 */
};

enum pd_feature {
    PD_FEAT_TRACING_DATA = 1,
    PD_FEAT_BUILD_ID = 2,
    PD_FEAT_HOSTNAME = 3,
    PD_FEAT_OSRELEASE = 4,
    PD_FEAT_VERSION = 5,
    PD_FEAT_ARCH = 6,
    PD_FEAT_NRCPUS = 7,
    PD_FEAT_CPUDESC = 8,
    PD_FEAT_CPUID = 9,
    PD_FEAT_TOTAL_MEM = 10,
    PD_FEAT_CMDLINE = 11,
    PD_FEAT_EVENT_DESC = 12,
    PD_FEAT_CPU_TOPOLOGY = 13,
    PD_FEAT_PMU_MAPPINGS = 16,
    PD_FEAT_AUXTRACE = 18,
    PD_FEAT_STAT = 19,
    PD_FEAT_SAMPLE_TIME = 21,
    PD_FEAT_CLOCKID = 23,
    PD_FEAT_DIR_FORMAT = 24,
    PD_FEAT_COMPRESSED = 27,
    PD_FEAT_CLOCK_DATA = 29,
    PD_FEAT_BITS = 256,
};

/* Record types that perf itself writes; numbers below 64 are the kernel's (enum perf_event_type). */
enum pd_user_type {
    PD_RECORD_HEADER_ATTR = 64,
    PD_RECORD_HEADER_EVENT_TYPE = 65,
    PD_RECORD_HEADER_TRACING_DATA = 66,
    PD_RECORD_HEADER_BUILD_ID = 67,
    PD_RECORD_FINISHED_ROUND = 68,
    PD_RECORD_ID_INDEX = 69,
    PD_RECORD_AUXTRACE_INFO = 70,
    PD_RECORD_AUXTRACE = 71,
    PD_RECORD_AUXTRACE_ERROR = 72,
    PD_RECORD_THREAD_MAP = 73,
    PD_RECORD_CPU_MAP = 74,
    PD_RECORD_STAT_CONFIG = 75,
    PD_RECORD_STAT = 76,
    PD_RECORD_STAT_ROUND = 77,
    PD_RECORD_EVENT_UPDATE = 78,
    PD_RECORD_TIME_CONV = 79,
    PD_RECORD_HEADER_FEATURE = 80,
    PD_RECORD_COMPRESSED = 81,
    PD_RECORD_FINISHED_INIT = 82,
    PD_RECORD_COMPRESSED2 = 83, /* Linux 6.16 on: as COMPRESSED, but padded to 8 bytes */
};

#define PD_AUXTRACE_INTEL_PT 1 /* auxtrace_info.type (enum auxtrace_type) */

struct pd_auxtrace_info {
    struct perf_event_header header;

    uint32_t type;

    uint32_t reserved;

    uint64_t priv[]; /* Intel PT: enum pd_pt_priv */
};

/* Intel PT's words of auxtrace_info.priv (tools/perf/util/intel-pt.h); a string of the address filter may
 * follow. */
enum pd_pt_priv {
    PD_PT_PMU_TYPE,
    PD_PT_TIME_SHIFT,
    PD_PT_TIME_MULT,
    PD_PT_TIME_ZERO,
    PD_PT_CAP_USER_TIME_ZERO,
    PD_PT_TSC_BIT,
    PD_PT_NORETCOMP_BIT,
    PD_PT_HAVE_SCHED_SWITCH,
    PD_PT_SNAPSHOT_MODE,
    PD_PT_PER_CPU_MMAPS,
    PD_PT_MTC_BIT,
    PD_PT_MTC_FREQ_BITS,
    PD_PT_TSC_CTC_N,
    PD_PT_TSC_CTC_D,
    PD_PT_CYC_BIT,
    PD_PT_MAX_NONTURBO_RATIO,
    PD_PT_FILTER_STR_LEN,
    PD_PT_PRIV_MAX,
};

/* Followed in the file by `size` bytes of trace, which header.size does not count. */
struct pd_auxtrace {
    struct perf_event_header header;

    uint64_t size;

    uint64_t offset; /* of the first byte in the stream of this ring */

    uint64_t reference; /* TSC when it was read */

    uint32_t idx; /* of the ring */

    uint32_t tid; /* -1: a ring of a CPU */

    uint32_t cpu; /* -1: a ring of a thread */

    uint32_t reserved;
};

/* PD_FEAT_AUXTRACE: a count (uint64_t), then one of these for each PD_RECORD_AUXTRACE of the file. */
struct pd_auxtrace_index_entry {
    uint64_t offset; /* of the record in the file */

    uint64_t size; /* header.size of the record */
};

/* PD_RECORD_COMPRESSED2; the data of PD_RECORD_COMPRESSED follow the header at once and fill the record. */
struct pd_compressed2 {
    struct perf_event_header header;

    uint64_t data_size; /* without the padding */

    uint8_t data[];
};

/* PD_FEAT_COMPRESSED. */
struct pd_compressed_feature {
    uint32_t version;

    uint32_t type; /* PD_COMPRESSION_ZSTD */

    uint32_t level;

    uint32_t ratio;

    uint32_t mmap_len; /* no record holds more than so many bytes once opened */
};

#define PD_COMPRESSION_ZSTD 1

/* PD_RECORD_HEADER_FEATURE, pipe mode's form of a feature section. */
struct pd_header_feature {
    struct perf_event_header header;

    uint64_t feature; /* enum pd_feature */

    uint8_t data[];
};

/* PD_RECORD_EVENT_UPDATE: a property of the event that has this id. */
struct pd_event_update {
    struct perf_event_header header;

    uint64_t type; /* PD_UPDATE_* */

    uint64_t id;

    char data[];
};

#define PD_UPDATE_NAME 2

/* PD_RECORD_HEADER_TRACING_DATA, followed by `size` bytes that header.size does not count. */
struct pd_tracing_data {
    struct perf_event_header header;

    uint32_t size;

    uint32_t reserved;
};

/* An entry of PD_FEAT_BUILD_ID and PD_RECORD_HEADER_BUILD_ID; the file's name follows, padded with NULs. */
struct pd_build_id_entry {
    struct perf_event_header header;

    int32_t pid;

    uint8_t id[20];

    uint8_t id_size; /* where header.misc has PD_MISC_BUILD_ID_SIZE, else the id has 20 bytes */

    uint8_t reserved[3];

    char filename[];
};

#define PD_MISC_BUILD_ID_SIZE (1 << 15)

#define PD_NAME_ALIGN 64 /* perf pads strings of its features with NULs to this */

struct pd_time_conv {
    struct perf_event_header header;

    uint64_t time_shift;

    uint64_t time_mult;

    uint64_t time_zero;

    uint64_t time_cycles; /* these three in newer files only (header.size tells) */

    uint64_t time_mask;

    uint8_t cap_user_time_zero;

    uint8_t cap_user_time_short;

    uint8_t reserved[6];
};

#endif
