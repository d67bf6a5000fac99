/* See recording.h. */
#include "recording.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[PATH_MAX];
static char path[PATH_MAX + 16], beside[PATH_MAX + 16];
static struct pd_writer *writer;
static struct {
    uint32_t pid, tid;

    uint64_t time;

    uint32_t cpu, zero;

    uint64_t id;
} identity;

enum {
    DUMMY_ID = 7,
    STALL_ID = 8,
    META_ID = 9,
    CLOCK_ID = 10,
    SWITCHES_ID = 11,
    LBR_ID = 12,
    ENTRY_ID = 13,
    EXIT_ID = 14,
    SIDE_ID = 15,
    LEFT_ID = 16
};

static void check(int rc, const struct st_error *err)
{
    if (rc)
        fail_msg("%s", err->text);
}

const char *recording_path(void)
{
    return path;
}

void recording_begin(void)
{
    struct perf_event_attr dummy = {.type = PERF_TYPE_SOFTWARE,
                                    .size = sizeof(dummy),
                                    .config = PERF_COUNT_SW_DUMMY,
                                    .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID |
                                                   PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
                                    .sample_id_all = 1};
    struct perf_event_attr stall = dummy;
    struct perf_event_attr meta = dummy;
    struct perf_event_attr clock = dummy, switches, lbr, calls = dummy;
    uint64_t ids[] = {DUMMY_ID, STALL_ID, META_ID, CLOCK_ID, SWITCHES_ID,
                      LBR_ID,   ENTRY_ID, EXIT_ID, SIDE_ID,  LEFT_ID};
    struct st_error err = {0};

    stall.config = PERF_COUNT_SW_BPF_OUTPUT;
    stall.sample_type |= PERF_SAMPLE_RAW;
    meta.sample_type |= PERF_SAMPLE_RAW;
    snprintf(folder, sizeof(folder), "%s/recording-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/r.data", folder);
    check(pd_writer_open(path, false, &writer, &err), &err);
    check(pd_writer_add_event(writer, &dummy, &ids[0], 1, "dummy:u", &err), &err);
    check(pd_writer_add_event(writer, &stall, &ids[1], 1, ST_STALL_EVENT_NAME, &err), &err);
    check(pd_writer_add_event(writer, &meta, &ids[2], 1, ST_META_EVENT_NAME, &err), &err);
    clock.config = PERF_COUNT_SW_CPU_CLOCK;
    clock.sample_type |= PERF_SAMPLE_CALLCHAIN;
    clock.freq = 1;
    clock.sample_freq = 1000;
    switches = clock;
    switches.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
    switches.freq = 0;
    switches.sample_period = 1;
    lbr = clock;
    lbr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
    lbr.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK;
    check(pd_writer_add_event(writer, &clock, &ids[3], 1, "cpu-clock", &err), &err);
    check(pd_writer_add_event(writer, &switches, &ids[4], 1, "context-switches", &err), &err);
    check(pd_writer_add_event(writer, &lbr, &ids[5], 1, "cycles", &err), &err);
    calls.type = PERF_TYPE_TRACEPOINT;
    calls.sample_type |= PERF_SAMPLE_RAW;
    check(pd_writer_add_event(writer, &calls, &ids[6], 1, "raw_syscalls:sys_enter", &err), &err);
    check(pd_writer_add_event(writer, &calls, &ids[7], 1, "raw_syscalls:sys_exit", &err), &err);
    calls.sample_type |= PERF_SAMPLE_CALLCHAIN;
    check(pd_writer_add_event(writer, &calls, &ids[9], 1, "sched:sched_switch", &err), &err);
    dummy.context_switch = 1;
    check(pd_writer_add_event(writer, &dummy, &ids[8], 1, "dummy:u", &err), &err);
    memset(&identity, 0, sizeof(identity));
    identity.id = DUMMY_ID;
}

void recording_end(void)
{
    struct st_error err = {0};

    check(pd_writer_commit(writer, &err), &err);
}

const char *recording_database(void)
{
    snprintf(beside, sizeof(beside), "%s/r.db", folder);
    return beside;
}

void recording_remove(void)
{
    unlink(path);
    unlink(recording_database());
    rmdir(folder);
}

void recording_at(uint64_t time, uint32_t pid, uint32_t tid, uint32_t cpu)
{
    identity.time = time;
    identity.pid = pid;
    identity.tid = tid;
    identity.cpu = cpu;
}

/* A record: words, then a string (NULL: none), then the identity. */
static void record(uint32_t type, uint16_t misc, const void *words, size_t size, const char *name)
{
    union {
        struct perf_event_header header;

        char bytes[512];
    } r = {.header = {.type = type, .misc = misc}};
    size_t at = sizeof(r.header) + size;
    struct st_error err = {0};

    if (size)
        memcpy(r.bytes + sizeof(r.header), words, size);
    if (name) {
        strcpy(r.bytes + at, name);
        at += (strlen(name) + 8) & ~(size_t)7;
    }
    memcpy(r.bytes + at, &identity, sizeof(identity));
    r.header.size = (uint16_t)(at + sizeof(identity));
    check(pd_writer_record(writer, &r.header, &err), &err);
}

void recording_comm(uint32_t pid, uint32_t tid, const char *name, bool exec)
{
    record(PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0, (uint32_t[]){pid, tid}, 8, name);
}

static void task(uint32_t type, uint32_t pid, uint32_t ppid, uint32_t tid, uint32_t ptid)
{
    struct {
        uint32_t ids[4];

        uint64_t time;
    } words = {{pid, ppid, tid, ptid}, identity.time};

    record(type, 0, &words, sizeof(words), NULL);
}

void recording_fork(uint32_t pid, uint32_t ppid, uint32_t tid, uint32_t ptid)
{
    task(PERF_RECORD_FORK, pid, ppid, tid, ptid);
}

void recording_exit(uint32_t pid, uint32_t tid)
{
    task(PERF_RECORD_EXIT, pid, pid, tid, tid);
}

void recording_mmap(uint32_t pid, uint64_t address, uint64_t length, uint64_t pgoff, const char *name)
{
    struct {
        uint32_t ids[2];

        uint64_t place[3];

        uint8_t inode[24];

        uint32_t prot, flags;
    } words = {.ids = {pid, pid}, .place = {address, length, pgoff}, .prot = 5, .flags = 2};

    record(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, &words, sizeof(words), name);
}

void recording_switch(bool out, bool preempted)
{
    record(PERF_RECORD_SWITCH,
           (uint16_t)((out ? PERF_RECORD_MISC_SWITCH_OUT : 0) |
                      (preempted ? PERF_RECORD_MISC_SWITCH_OUT_PREEMPT : 0)),
           NULL, 0, NULL);
}

void recording_itrace(uint32_t pid, uint32_t tid)
{
    record(PERF_RECORD_ITRACE_START, 0, (uint32_t[]){pid, tid}, 8, NULL);
}

void recording_lost(uint64_t n)
{
    record(PERF_RECORD_LOST, 0, (uint64_t[]){DUMMY_ID, n}, 16, NULL);
}

void recording_lost_switches(uint64_t n)
{
    identity.id = SIDE_ID;
    record(PERF_RECORD_LOST, 0, (uint64_t[]){SIDE_ID, n}, 16, NULL);
    identity.id = DUMMY_ID;
}

void recording_ksymbol(uint64_t address, uint32_t length, uint16_t flags, const char *name)
{
    const struct {
        uint64_t address;

        uint32_t length;

        uint16_t type, flags;
    } fixed = {address, length, PERF_RECORD_KSYMBOL_TYPE_BPF, flags};

    record(PERF_RECORD_KSYMBOL, 0, &fixed, sizeof(fixed), name);
}

/* A sample with a call chain, and `size` bytes of other data behind it. */
static void chain_sample(uint64_t id, const uint64_t *chain, unsigned n, const void *data, size_t size)
{
    struct {
        struct perf_event_header header;

        uint64_t id;

        uint32_t pid, tid;

        uint64_t time;

        uint32_t cpu, zero;

        uint64_t n, words[80];
    } r = {.header = {.type = PERF_RECORD_SAMPLE},
           .id = id,
           .pid = identity.pid,
           .tid = identity.tid,
           .time = identity.time,
           .cpu = identity.cpu,
           .n = n};
    size_t used = n * sizeof(*chain) + size;
    struct st_error err = {0};

    assert_true(used <= sizeof(r.words));
    if (n)
        memcpy(r.words, chain, n * sizeof(*chain));
    if (size)
        memcpy(r.words + n, data, size);
    r.header.size = (uint16_t)(sizeof(r) - sizeof(r.words) + used);
    check(pd_writer_record(writer, &r.header, &err), &err);
}

void recording_sample(bool at_switch, const uint64_t *chain, unsigned n)
{
    chain_sample(at_switch ? SWITCHES_ID : CLOCK_ID, chain, n, NULL, 0);
}

void recording_branches(const uint64_t (*branches)[2], unsigned n)
{
    struct {
        struct perf_event_header header;

        uint64_t id;

        uint32_t pid, tid;

        uint64_t time;

        uint32_t cpu, zero;

        uint64_t chain, n, branches[32][3];
    } r = {.header = {.type = PERF_RECORD_SAMPLE},
           .id = LBR_ID,
           .pid = identity.pid,
           .tid = identity.tid,
           .time = identity.time,
           .cpu = identity.cpu,
           .n = n};
    struct st_error err = {0};

    assert_true(n <= 32);
    for (unsigned i = 0; i < n; i++)
        memcpy(r.branches[i], branches[i], sizeof(branches[i]));
    r.header.size = (uint16_t)(sizeof(r) - (32 - n) * sizeof(r.branches[0]));
    check(pd_writer_record(writer, &r.header, &err), &err);
}

void recording_lost_samples(uint64_t n)
{
    identity.id = CLOCK_ID;
    record(PERF_RECORD_LOST, 0, (uint64_t[]){CLOCK_ID, n}, 16, NULL);
    identity.id = DUMMY_ID;
}

void recording_throttle(bool on)
{
    identity.id = CLOCK_ID;
    record(on ? PERF_RECORD_THROTTLE : PERF_RECORD_UNTHROTTLE, 0,
           (uint64_t[]){identity.time, CLOCK_ID, CLOCK_ID}, 24, NULL);
    identity.id = DUMMY_ID;
}

static void sample(size_t event, const void *raw, size_t size)
{
    struct pd_made_sample s = {identity.pid,     identity.tid, identity.cpu, identity.time,
                               DUMMY_ID + event, raw,          size};
    struct st_error err = {0};

    check(pd_writer_sample(writer, event, &s, &err), &err);
}

void recording_syscall(int64_t number, int64_t result)
{
    const uint64_t entry[8] = {0, (uint64_t)number, 1, 2, 3},
                   exit[3] = {0, (uint64_t)number, (uint64_t)result};

    sample(6, entry, sizeof(entry));
    identity.time++;
    sample(7, exit, sizeof(exit));
}

void recording_left(int64_t state, const uint64_t *chain, unsigned n)
{
    const struct {
        uint32_t size;

        uint8_t common[8];

        char prev[16];

        int32_t prev_pid, prev_prio;

        int64_t prev_state;

        char next[16];

        int32_t next_pid, next_prio;

        uint8_t padding[4]; /* records are of 8 bytes each */
    } __attribute__((packed))
    raw = {.size = sizeof(raw) - sizeof(raw.size), .prev_pid = (int32_t)identity.tid, .prev_state = state};

    chain_sample(LEFT_ID, chain, n, &raw, sizeof(raw));
}

void recording_stall(const struct st_stall_record *r)
{
    sample(1, r, sizeof(*r));
}

void recording_meta(const char *strings, size_t size)
{
    struct st_meta_record head = {ST_META_MAGIC, ST_STALL_VERSION, (st_u16)size};
    char bytes[2048];

    assert_true(size <= sizeof(bytes) - sizeof(head));
    memcpy(bytes, &head, sizeof(head));
    memcpy(bytes + sizeof(head), strings, size);
    sample(2, bytes, sizeof(head) + size);
}

void recording_ring(uint32_t idx, uint32_t tid, uint64_t offset, size_t n)
{
    static const char padding[256];
    struct pd_auxtrace head = {.header = {.type = PD_RECORD_AUXTRACE, .size = sizeof(head)},
                               .offset = offset,
                               .idx = idx,
                               .tid = tid,
                               .cpu = UINT32_MAX};
    struct st_error err = {0};

    assert_true(n <= sizeof(padding));
    check(pd_writer_auxtrace(writer, &head, padding, n, NULL, 0, &err), &err);
}

void recording_aux(uint64_t offset, uint64_t size, uint64_t flags)
{
    record(PERF_RECORD_AUX, 0, (uint64_t[]){offset, size, flags}, 24, NULL);
}

void recording_vdso(uint32_t pid, uint64_t address, const void *image, uint32_t size)
{
    struct st_vdso_record head = {
        .magic = ST_VDSO_MAGIC, .version = ST_STALL_VERSION, .pid = pid, .size = size, .address = address};
    char bytes[2048];

    memcpy(bytes, &head, sizeof(head));
    memcpy(bytes + sizeof(head), image, size);
    sample(2, bytes, sizeof(head) + size);
}

void recording_names(const struct recording_name *names, unsigned n)
{
    struct st_symbol_record head = {ST_SYMBOL_MAGIC, ST_STALL_VERSION, (st_u16)n};
    char bytes[1024];
    size_t at = sizeof(head);

    memcpy(bytes, &head, sizeof(head));
    for (unsigned i = 0; i < n; i++) {
        memcpy(bytes + at, &names[i].address, 8);
        memcpy(bytes + at + 8, &names[i].start, 8);
        strcpy(bytes + at + 16, names[i].name);
        at += 17 + strlen(names[i].name);
    }
    sample(1, bytes, at);
}
