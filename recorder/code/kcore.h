/* The kernel's code, in the form of perf's kcore_dir: kcore, kallsyms, modules. */
#ifndef ST_RECORDER_CODE_KCORE_H
#define ST_RECORDER_CODE_KCORE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* Where the kernel's own code lies (the symbols _text, _stext and _etext). */
struct rec_kernel_text {
    uint64_t text, stext, etext;
};

/* From /proc/kallsyms. ST_ECANNOT: this user sees no addresses (kernel.kptr_restrict). */
int rec_kernel_text(struct rec_kernel_text *text, struct st_error *err);

/* Whether this user can read the kernel's code: 0, or ST_ECANNOT with what to do. */
int rec_kcore_probe(struct st_error *err);

/* Code bytes that were replaced by others (PERF_RECORD_TEXT_POKE). */
struct rec_code_change {
    uint64_t address;

    const uint8_t *old;

    size_t n;
};

/* Writes the three files into the folder of descriptor `dir`, with `changes` (oldest first) taken back:
 * readers apply them again as the trace comes to their times. Of /proc/kcore only what holds code is copied:
 * the kernel's text, modules, BPF programs, trampolines. Addresses stay, offsets do not. ST_ECANNOT: no
 * permission; ST_EFAIL: cannot be written. */
int rec_kcore_write(int dir, const struct rec_code_change *changes, size_t nchanges, struct st_error *err);

#endif
