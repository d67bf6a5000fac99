/* perf_event_open and what its refusals mean. */
#ifndef ST_RECORDER_PERF_EVENT_H
#define ST_RECORDER_PERF_EVENT_H

#include "base/error.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The fields of every event's records here, so that one parser fits all: behind each record stand pid, tid,
 * time, cpu, id. Nobody needs the IP, but perf script wants it in every event before it shows symbols of any.
 */
#define REC_SAMPLE_TYPE                                                                                      \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

/* The system call, with PERF_FLAG_FD_CLOEXEC. Returns the descriptor, or -1 with errno. */
int rec_perf_event(const struct perf_event_attr *attr, pid_t pid, int cpu);

/* The same, in the group of the event `leader`. */
int rec_perf_event_in_group(const struct perf_event_attr *attr, pid_t pid, int cpu, int leader);

/* An attribute of the dummy software event with REC_SAMPLE_TYPE on all its records; nothing is asked for yet.
 */
void rec_perf_dummy(struct perf_event_attr *attr);

/* Gives the event CLOCK_MONOTONIC, which is what bpf_ktime_get_ns() tells. A ring, or a group, has events of
 * one clock only. */
void rec_perf_use_monotonic(struct perf_event_attr *attr);

/* Explains errno of a refused perf_event_open that was to `what` ("watch thread 12"). ST_ECANNOT where a
 * privilege or a limit lacks, with what to do; ST_EFAIL otherwise. Returns the code. */
int rec_perf_refused(const char *what, struct st_error *err);

/* The kernel's id of an opened event (PERF_EVENT_IOC_ID). 0, or ST_EFAIL. */
int rec_perf_id(int fd, uint64_t *id, struct st_error *err);

/* Whether the thread that an event was opened for has ended: the kernel says so in poll
 * (kernel/events/core.c, perf_poll). */
bool rec_perf_ended(int fd);

/* /proc/sys/kernel/perf_event_paranoid, or -2 where it cannot be read. */
int rec_perf_paranoid(void);

/* For how many ns an event with read_format PERF_FORMAT_TOTAL_TIME_ENABLED has been enabled; 0: not known. It
 * stands still once a CPU's event is off. */
uint64_t rec_perf_enabled_for(int fd);

#endif
