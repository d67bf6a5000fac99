/* The kernel's code as it is now, in the form of perf's kcore_dir: kcore, kallsyms, modules. */
#ifndef ST_RECORDER_KCORE_H
#define ST_RECORDER_KCORE_H

#include "base/error.h"

#include <stdint.h>

/* Where the kernel's own code lies (the symbols _text, _stext and _etext). */
struct rec_kernel_text {
    uint64_t text, stext, etext;
};

/* From /proc/kallsyms. ST_ECANNOT: this user sees no addresses (kernel.kptr_restrict). */
int rec_kernel_text(struct rec_kernel_text *text, struct st_error *err);

/* Whether this user can read the kernel's code: 0, or ST_ECANNOT with what to do. */
int rec_kcore_probe(struct st_error *err);

/* Writes the three files into the folder `dir`. Of /proc/kcore only what holds code is copied: the kernel's
 * text, modules, BPF programs, trampolines. Addresses
 * stay, offsets do not. ST_ECANNOT: no permission; ST_EFAIL: cannot be written. */
int rec_kcore_write(const char *dir, struct st_error *err);

#endif
