/* Whether this process, on this kernel, can load tracing BPF programs. */
#ifndef ST_TRIGGERS_PRIVILEGE_H
#define ST_TRIGGERS_PRIVILEGE_H

#include "base/error.h"

#include <stdbool.h>

/* 0, or ST_ECANNOT naming the capability, kernel feature or name space that lacks. `measure_only`: nothing is
 * recorded, so the advice is not to do without triggers. */
int trg_check_bpf(bool measure_only, struct st_error *err);

/* Sends what libbpf says to the debug log and keeps the last complaint for trg_bpf_failed(). Call once before
 * use. */
void trg_hear_libbpf(void);

/* `rc` is a negative errno of a libbpf call that tried to do `what`: ST_ECANNOT where the kernel or the
 * rights are the reason, else ST_EFAIL; with libbpf's complaint. Returns the code. */
int trg_bpf_failed(int rc, const char *what, struct st_error *err);

#endif
