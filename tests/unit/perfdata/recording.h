/* A small recording with a record of each kind that matters, made by the writer. */
#ifndef ST_TEST_RECORDING_H
#define ST_TEST_RECORDING_H

#include "perfdata/reader.h"
#include "perfdata/writer.h"

#include <linux/perf_event.h>

#define PT_TYPE 8 /* the number of the intel_pt PMU */
#define PID     4242
#define TID     4243

/* Ids of the events of the recording. */
enum { PT_ID = 100, DUMMY_ID = 110, STALL_ID = 120 };

/* Indexes of its events. */
enum { PT_EVENT, DUMMY_EVENT, STALL_EVENT };

#define SAMPLE_TYPE                                                                                          \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

/* Times, in perf clock ns. They are not written in this order. */
#define T_COMM   1000000000ull
#define T_MMAP2  1000001000ull
#define T_ITRACE 1000002000ull
#define T_STALL  1000004000ull
#define T_SWITCH 1000003000ull
#define T_EXIT   1000005000ull

#define STALL_TEXT "the stall record's bytes, 41 of them: odd"

/* The trace: PSB, PSBEND, then PADs; TRACE_SIZE bytes are written, in two pieces, and the writer pads them
 * to 8. */
#define TRACE_SIZE 21
extern const uint8_t recording_trace[TRACE_SIZE];

#define NRECORDS 8 /* of recording_records() */

/* A record of at most 256 bytes, and its trailer (TID, TIME, CPU, IDENTIFIER), being put together. */
struct made {
    union {
        struct perf_event_header header;

        uint64_t words[64];

        uint8_t bytes[512];
    };
};

/* Starts a record, then appends to it; each keeps header.size. A string is padded to 8. */
void made_start(struct made *m, uint32_t type, uint16_t misc);
void made_u32(struct made *m, uint32_t value);
void made_u64(struct made *m, uint64_t value);
void made_string(struct made *m, const char *text);
void made_trailer(struct made *m, uint64_t time, uint64_t id);

/* An MMAP2 of PID at `addr`, with trailer. */
void made_mmap2(struct made *m, uint64_t addr, const char *filename, uint64_t time, uint64_t id);

/* The attributes of the three events. */
void recording_attr(struct perf_event_attr *attr, int event);

/* Each step returns the writer's code. */
int recording_events(struct pd_writer *w, struct st_error *err);
int recording_records(struct pd_writer *w, struct st_error *err);
int recording_features(struct pd_writer *w, struct st_error *err);

/* All of them: open, the three steps, with `directory` a file kallsyms in kcore_dir, commit. */
int recording_write(const char *path, bool directory, struct st_error *err);

#endif
