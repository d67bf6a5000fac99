/* The fields of the perf records that the recorder itself looks at. All have REC_SAMPLE_TYPE
 * (recorder/perf/event.h). */
#ifndef ST_RECORDER_PERF_RECORD_H
#define ST_RECORDER_PERF_RECORD_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

/* What stands behind every record but samples (perf_event_open(2), struct sample_id). */
struct rec_trailer {
    uint32_t pid, tid;

    uint64_t time;

    uint32_t cpu, reserved;

    uint64_t id;
};

/* What a sample begins with. */
struct rec_sample_head {
    struct perf_event_header header;

    uint64_t id;

    uint64_t ip;

    uint32_t pid, tid;

    uint64_t time;

    uint32_t cpu, reserved;
};

/* PERF_RECORD_FORK and PERF_RECORD_EXIT. */
struct rec_task_record {
    struct perf_event_header header;

    uint32_t pid, ppid;

    uint32_t tid, ptid;

    uint64_t time;
};

/* PERF_RECORD_COMM; the name follows, padded to 8. */
struct rec_comm_record {
    struct perf_event_header header;

    uint32_t pid, tid;

    char comm[];
};

/* PERF_RECORD_MMAP2; the file's name follows, padded to 8. */
struct rec_mmap2_record {
    struct perf_event_header header;

    uint32_t pid, tid;

    uint64_t addr, len, pgoff;

    union {
        struct {
            uint32_t maj, min;

            uint64_t ino, ino_generation;
        };

        struct { /* with PERF_RECORD_MISC_MMAP_BUILD_ID */
            uint8_t build_id_size, reserved1;

            uint16_t reserved2;

            uint8_t build_id[20];
        };
    };

    uint32_t prot, flags;

    char filename[];
};

/* PERF_RECORD_LOST. */
struct rec_lost_record {
    struct perf_event_header header;

    uint64_t id, lost;
};

/* The largest raw data of a sample, in 8-byte words: header.size has 16 bits. */
#define REC_RAW_WORDS 8192

/* Copies the raw data out of a sample with PERF_SAMPLE_RAW, where they lie 4 bytes beyond an 8-byte boundary.
 * Returns their size, 0 when there are none. *at: where they stand in the record. */
uint32_t rec_sample_raw(const struct perf_event_header *record, uint64_t raw[REC_RAW_WORDS], size_t *at);

/* The perf clock at which the record was written; 0 for one that is too short to hold it. */
uint64_t rec_record_time(const struct perf_event_header *record);

#endif
