/* Makes the small recording. */
#include "recording.h"

#include "base/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* SDM, volume 3, chapter Intel PT: PSB is 02 82 eight times, PSBEND 02 23. */
const uint8_t recording_trace[TRACE_SIZE] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02,
                                             0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x23};

void made_start(struct made *m, uint32_t type, uint16_t misc)
{
    memset(m, 0, sizeof(*m));
    m->header = (struct perf_event_header){.type = type, .misc = misc, .size = sizeof(m->header)};
}

static void made_bytes(struct made *m, const void *data, size_t n)
{
    memcpy(m->bytes + m->header.size, data, n);
    m->header.size = (uint16_t)(m->header.size + n);
}

void made_u32(struct made *m, uint32_t value)
{
    made_bytes(m, &value, sizeof(value));
}

void made_u64(struct made *m, uint64_t value)
{
    made_bytes(m, &value, sizeof(value));
}

void made_string(struct made *m, const char *text)
{
    char padded[256] = {0};

    strcpy(padded, text);
    made_bytes(m, padded, (strlen(text) + 8) / 8 * 8);
}

void made_trailer(struct made *m, uint64_t time, uint64_t id)
{
    made_u32(m, PID);
    made_u32(m, TID);
    made_u64(m, time);
    made_u32(m, 1);
    made_u32(m, 0);
    made_u64(m, id);
}

void made_mmap2(struct made *m, uint64_t addr, const char *filename, uint64_t time, uint64_t id)
{
    made_start(m, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
    made_u32(m, PID);
    made_u32(m, TID);
    made_u64(m, addr);
    made_u64(m, 0x2000);
    made_u64(m, 0x1000);
    for (int i = 0; i < 6; i++)
        made_u32(m, 0); /* device and inode */
    made_u32(m, 5);
    made_u32(m, 2);
    made_string(m, filename);
    made_trailer(m, time, id);
}

void recording_attr(struct perf_event_attr *attr, int event)
{
    memset(attr, 0, sizeof(*attr));
    attr->size = sizeof(*attr);
    attr->sample_type = SAMPLE_TYPE;
    attr->sample_id_all = 1;
    attr->sample_period = 1;
    attr->exclude_kernel = 1; /* of all events: else perf report misses a map of the kernel */
    if (event == PT_EVENT) {
        attr->type = PT_TYPE;
        attr->config = 0x300e601;
        return;
    }
    attr->type = PERF_TYPE_SOFTWARE;
    attr->config = event == DUMMY_EVENT ? PERF_COUNT_SW_DUMMY : PERF_COUNT_SW_BPF_OUTPUT;
    if (event == DUMMY_EVENT)
        attr->comm = attr->mmap = attr->mmap2 = attr->task = attr->context_switch = 1;
    else
        attr->sample_type |= PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW;
}

int recording_events(struct pd_writer *w, struct st_error *err)
{
    static const char *const names[] = {"intel_pt//u", "dummy:u", "stalltrap:stall"};
    static const uint64_t first_id[] = {PT_ID, DUMMY_ID, STALL_ID};
    int rc = pd_writer_pmu(w, PT_TYPE, "intel_pt", err);

    for (int i = 0; !rc && i < 3; i++) {
        const uint64_t ids[] = {first_id[i], first_id[i] + 1};
        struct perf_event_attr attr;

        recording_attr(&attr, i);
        rc = pd_writer_add_event(w, &attr, ids, 2, names[i], err);
    }
    return rc;
}

static int put_info(struct pd_writer *w, struct st_error *err)
{
    struct made m;

    made_start(&m, PD_RECORD_AUXTRACE_INFO, 0);
    made_u32(&m, PD_AUXTRACE_INTEL_PT);
    made_u32(&m, 0);
    for (int i = 0; i < PD_PT_PRIV_MAX; i++)
        made_u64(&m, i == PD_PT_PMU_TYPE ? PT_TYPE : i == PD_PT_TIME_MULT ? 1 : 0);
    return pd_writer_record(w, &m.header, err);
}

static int put_comm(struct pd_writer *w, struct st_error *err)
{
    struct made m;

    made_start(&m, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
    made_u32(&m, PID);
    made_u32(&m, TID);
    made_string(&m, "forwarder");
    made_trailer(&m, T_COMM, DUMMY_ID);
    return pd_writer_record(w, &m.header, err);
}

static int put_mmap2(struct pd_writer *w, struct st_error *err)
{
    struct made m;

    made_mmap2(&m, 0x400000, "/usr/bin/forwarder", T_MMAP2, DUMMY_ID + 1);
    return pd_writer_record(w, &m.header, err);
}

static int put_itrace_start(struct pd_writer *w, struct st_error *err)
{
    struct made m;

    made_start(&m, PERF_RECORD_ITRACE_START, 0);
    made_u32(&m, PID);
    made_u32(&m, TID);
    made_trailer(&m, T_ITRACE, PT_ID);
    return pd_writer_record(w, &m.header, err);
}

static int put_switch(struct pd_writer *w, struct st_error *err)
{
    struct made m;

    made_start(&m, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT);
    made_trailer(&m, T_SWITCH, DUMMY_ID);
    return pd_writer_record(w, &m.header, err);
}

static int put_stall(struct pd_writer *w, struct st_error *err)
{
    const struct pd_made_sample s = {PID, TID, 1, T_STALL, STALL_ID, STALL_TEXT, sizeof(STALL_TEXT) - 1};

    return pd_writer_sample(w, STALL_EVENT, &s, err);
}

static int put_exit(struct pd_writer *w, struct st_error *err)
{
    struct made m;

    made_start(&m, PERF_RECORD_EXIT, 0);
    made_u32(&m, PID);
    made_u32(&m, 1);
    made_u32(&m, TID);
    made_u32(&m, 1);
    made_u64(&m, T_EXIT);
    made_trailer(&m, T_EXIT, DUMMY_ID);
    return pd_writer_record(w, &m.header, err);
}

static int put_trace(struct pd_writer *w, struct st_error *err)
{
    const struct pd_auxtrace head = {
        .offset = 0x1000, .reference = 7, .idx = 3, .tid = TID, .cpu = (uint32_t)-1};

    return pd_writer_auxtrace(w, &head, recording_trace, 5, recording_trace + 5, TRACE_SIZE - 5, err);
}

/* Out of the order of time, as a recorder of several rings has them. */
int recording_records(struct pd_writer *w, struct st_error *err)
{
    static int (*const puts[NRECORDS])(struct pd_writer *, struct st_error *) = {
        put_info, put_comm, put_mmap2, put_stall, put_exit, put_itrace_start, put_switch, put_trace};
    int rc = 0;

    for (int i = 0; !rc && i < NRECORDS; i++)
        rc = puts[i](w, err);
    return rc;
}

int recording_features(struct pd_writer *w, struct st_error *err)
{
    static char *const words[] = {"stalltrap", "arm", "-p", "4242", NULL};
    static const uint8_t id[20] = {0xab, 0xcd, 3,  4,  5,  6,  7,  8,  9,  10,
                                   11,   12,   13, 14, 15, 16, 17, 18, 19, 20};
    int rc = pd_writer_string(w, PD_FEAT_HOSTNAME, "examplehost", err);

    if (!rc)
        rc = pd_writer_cmdline(w, 4, words, err);
    if (!rc)
        rc = pd_writer_build_id(w, -1, PERF_RECORD_MISC_USER, id, sizeof(id), "/usr/bin/forwarder", err);
    if (!rc)
        rc = pd_writer_build_id(w, -1, PERF_RECORD_MISC_KERNEL, id, 16, "[kernel.kallsyms]", err);
    return rc;
}

static int put_kallsyms(struct pd_writer *w, struct st_error *err)
{
    static const char text[] = "ffffffff81000000 T _text\n";
    int folder = pd_writer_kcore_dir(w, err);
    int fd = folder < 0 ? -1 : st_folder_create(folder, "kallsyms");
    int rc = 0;

    if (fd < 0)
        return st_fail_errno(err, ST_EFAIL, "kallsyms");
    if (write(fd, text, sizeof(text) - 1) != sizeof(text) - 1)
        rc = st_fail_errno(err, ST_EFAIL, "kallsyms");
    close(fd);
    return rc;
}

int recording_write(const char *path, bool directory, struct st_error *err)
{
    struct pd_writer *w;
    int rc = pd_writer_open(path, directory, &w, err);

    if (rc)
        return rc;
    rc = recording_events(w, err);
    if (!rc)
        rc = recording_records(w, err);
    if (!rc)
        rc = recording_features(w, err);
    if (!rc && directory)
        rc = put_kallsyms(w, err);
    if (!rc)
        return pd_writer_commit(w, err);
    pd_writer_abort(w);
    return rc;
}
