/* Inside of the side-band (this folder only). */
#ifndef ST_DECODER_SIDEBAND_SIDEBAND_IMPL_H
#define ST_DECODER_SIDEBAND_SIDEBAND_IMPL_H

#include "decoder/sideband/sideband.h"

/* A record and when it is to be applied. */
struct sb_timed {
    uint64_t time;

    size_t order; /* in the file */

    struct pd_record record;
};

/* A vdso that the snapshot carries. */
struct sb_vdso {
    int32_t pid;

    uint64_t address;

    bool narrow; /* of 32-bit programs */

    struct dec_image *image;
};

/* What is known while the records are read. */
struct sb_context {
    struct dec_sideband *sb;

    struct pd_reader *reader;

    struct dec_images *images;

    ST_VEC(struct dec_aux_loss) losses;

    ST_VEC(struct pd_build_id) build_ids; /* of files, for mappings that carry none; by name */

    ST_VEC(struct sb_timed) timed;

    ST_VEC(struct sb_vdso) vdsos;

    struct sb_ring_key *ring_keys; /* inside rings.c */

    ST_VEC(struct dec_hole) earliest; /* inside sideband_switch.c */

    size_t holes;

    uint64_t reference; /* the latest of PD_RECORD_AUXTRACE */

    bool has_kcore, kernel_named;

    bool sampled_at_switches; /* sb->sampled is no more than that */
};

/* ---- threads.c: 0 or -1 (no memory) where they return int ---- */

/* The thread that has this tid now, made if need be. NULL: no memory. pid -1: unknown. */
struct dec_thread *sb_thread(struct sb_context *c, int32_t pid, int32_t tid, int32_t cpu);

/* A new thread takes the tid. NULL: no memory. */
struct dec_thread *sb_new_thread(struct sb_context *c, int32_t pid, int32_t tid, uint64_t time);

/* The process that has this pid now, made if need be. NULL: no memory. */
struct dec_process *sb_process(struct sb_context *c, int32_t pid);

/* The process that has this pid now; NULL: never heard of. */
struct dec_process *sb_find_process(const struct dec_sideband *sb, int32_t pid);

/* A new process takes the pid. NULL: no memory. */
struct dec_process *sb_new_process(struct sb_context *c, int32_t pid, int32_t parent, uint64_t time);

int sb_name(struct dec_thread *thread, uint64_t time, const char *name);

void sb_free_threads(struct dec_sideband *sb);

/* ---- switch.c ---- */
int sb_switch(struct sb_context *c, struct dec_thread *thread, uint64_t time, int32_t cpu, bool out,
              bool preempted);

/* Context switches of a CPU were lost up to `time`. Whoever was on it, or on none, may have been anywhere
 * since the last that was not. *since: when that was. */
int sb_lost_switches(struct sb_context *c, uint64_t time, int32_t cpu, uint64_t *since);

/* The last record was read: closes what is open at `last`. */
int sb_end_switches(struct sb_context *c);

/* ---- measured.c: 0 or -1 (no memory) ---- */

/* Adds the waits of threads that triggers measured and the switches do not tell; in them the threads have no
 * CPU. *changed: there were some. */
int sb_add_measured_waits(struct sb_context *c, bool *changed);

/* ---- rings.c: 0, or a negative st_code ---- */
int sb_auxtrace(struct sb_context *c, const struct pd_record *record, struct st_error *err);

/* No more of them will come. */
void sb_forget_rings(struct sb_context *c);

/* Splits pieces where the kernel lost bytes. 0 or -1. */
int sb_split_pieces(struct sb_context *c);

/* ---- records.c: 0, or a negative st_code ---- */

/* Looks at a record in the order of the file (a pd_record_fn): the trace is used up, the rest is kept in
 * `timed`. */
int sb_collect(void *context, const struct pd_record *record, struct st_error *err);

/* Applies a record at its time. */
int sb_apply(struct sb_context *c, const struct sb_timed *t, struct st_error *err);

/* ---- stalls.c ---- */

/* A sample of the stall event. */
int sb_stall_sample(struct sb_context *c, const struct pd_record *record, struct st_error *err);

/* ---- samples.c ---- */

/* Whether the record is a sample with a call chain, of a thread at a time. */
bool sb_is_sample(const struct pd_record *record);

/* What the samples of an event say beside their call chain. */
enum dec_point_kind sb_point_kind(const struct pd_event *event);

/* Keeps it. 0 or a negative st_code. */
int sb_point(struct sb_context *c, const struct pd_record *record, struct st_error *err);
int sb_sample(struct sb_context *c, const struct pd_record *record, struct st_error *err);

void sb_sort_samples(struct dec_sideband *sb);

/* Takes in what the recorder tells of its rings of samples and of wake-ups. 0 or -1 (no memory). */
int sb_sample_rings(struct sb_context *c);

/* ---- meta.c ---- */

/* A sample of the recorder's own event: struct st_meta_record, struct st_vdso_record. 0 or a negative
 * st_code. */
int sb_meta_sample(struct sb_context *c, const struct pd_record *record, struct st_error *err);

/* The image of a process's vdso, if the snapshot carries it; else NULL. */
struct dec_image *sb_find_vdso(const struct sb_context *c, int32_t pid, uint64_t address);

/* Whether an address is one that 32-bit programs can have. */
bool sb_is_narrow(uint64_t address);

/* Uses what the recorder tells of its rings and of the end. 0 or -1 (no memory). */
int sb_apply_meta(struct sb_context *c);

void sb_sort_kernel_names(struct dec_sideband *sb);

/* ---- kernel.c: 0, or a negative st_code ---- */

/* Maps the kernel's code that the snapshot carries (kcore_dir), with the names of its kallsyms. A broken one
 * is a warning. */
int sb_map_kcore(struct sb_context *c, struct st_error *err);

/* A mapping of the kernel's core as perf tells of it: its name is [kernel.kallsyms] with a symbol behind it,
 * and pgoff the address of that symbol (tools/perf/util/synthetic-events.c,
 * __perf_event__synthesize_kernel_mmap). */
struct sb_kernel_map {
    const char *name;

    uint64_t address, pgoff;

    struct dec_image *image;
};

/* Names the kernel's functions by this machine's /proc/kallsyms where the recording has no copy of its own
 * and that symbol stands at the recorded address: the kernel is laid out anew at each boot, so it is the same
 * boot. */
int sb_name_running_kernel(struct sb_context *c, const struct sb_kernel_map *map, struct st_error *err);

#endif
