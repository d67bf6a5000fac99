/* Where a function is: in the kernel, or at which offset of which files. */
#ifndef ST_TRIGGERS_FUNCTIONS_H
#define ST_TRIGGERS_FUNCTIONS_H

#include "base/vec.h"
#include "triggers/trigger.h"

#include <limits.h>

#define TRG_FUNCTION 200

struct trg_place {
    char path[PATH_MAX]; /* as this process reaches it, also into other mount name spaces */

    uint64_t offset; /* in the file */

    bool go; /* Go's compiler made it: its stacks move, and a changed return address ends the program */
};

struct trg_function {
    char name[TRG_FUNCTION];

    bool kernel; /* else at `places` */

    ST_VEC(struct trg_place) places;
};

/* Finds "[MODULE!]NAME". MODULE is `kernel`, a path, or the base name of a file that the target has mapped
 * ("libc" stands for libc.so.6 too). Without one: in all files that the target has mapped, else in the
 * kernel. ST_EUSAGE: it is nowhere; the message names where it was looked for and the nearest name. On error
 * nothing is left behind. */
int trg_find_function(const char *what, const struct trg_config *config, struct trg_function *f,
                      struct st_error *err);

/* The file that MODULE (a path or a base name, as above) is for the target, as this process reaches it.
 * `path` may be `module`. ST_EUSAGE: none. */
int trg_find_file(const char *module, const struct trg_config *config, char path[PATH_MAX],
                  struct st_error *err);

void trg_function_free(struct trg_function *f);

/* How a kernel function can be seen here. */
enum trg_kernel_hook {
    TRG_HOOK_FENTRY,
    TRG_HOOK_KPROBE,
};

/* Tries them, best first. ST_ECANNOT: this kernel has none. */
int trg_find_kernel_hook(const char *name, enum trg_kernel_hook *hook, struct st_error *err);

/* "fentry", "kprobe" */
const char *trg_kernel_hook_name(enum trg_kernel_hook hook);

#endif
