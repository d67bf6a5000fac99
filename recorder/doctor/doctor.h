/* What this machine can record: a list of findings. */
#ifndef ST_RECORDER_DOCTOR_DOCTOR_H
#define ST_RECORDER_DOCTOR_DOCTOR_H

#include "base/error.h"
#include "base/vec.h"

#include <stdbool.h>

enum doctor_verdict {
    DOCTOR_YES,
    DOCTOR_NO,
    DOCTOR_INFO /* neither good nor bad: a number */
};

/* Texts are malloc'd or NULL. */
struct doctor_finding {
    char *key; /* for programs: "source.step" */

    char *label; /* for people */

    enum doctor_verdict verdict;

    char *detail;

    char *advice; /* what to do where it is DOCTOR_NO */
};

struct doctor {
    ST_VEC(struct doctor_finding) findings;

    bool out_of_memory;
};

/* Adds one; `advice` may be NULL. The detail is formatted. */
void doctor_add(struct doctor *d, const char *key, const char *label, enum doctor_verdict verdict,
                const char *advice, const char *detail, ...) __attribute__((format(printf, 6, 7)));

/* One that is DOCTOR_NO, in the words of arm's refusal: the sentence, and its hint as advice. */
void doctor_refusal(struct doctor *d, const char *key, const char *label, const struct st_error *err);

/* sources.c: each source's probe; the intel_pt PMU and its caps, or why there is none. */
void doctor_sources(struct doctor *d);

/* kernel.c: kernel version, perf_event_paranoid, locked memory, capabilities, tracefs, ptrace. */
void doctor_kernel(struct doctor *d);

/* bpf.c: BTF, and each program type that triggers use, tried by loading a tiny program. */
void doctor_bpf(struct doctor *d);

#endif
