/* Raw Intel PT with images of memory beside it, for people who have a dump and no perf.data. */
#ifndef ST_DECODER_CMD_RAW_H
#define ST_DECODER_CMD_RAW_H

#include "decoder/pt/flow.h"

#include "base/vec.h"

#include <stdio.h>

struct dec_raw_image {
    char *file;

    uint64_t offset;

    uint64_t size; /* 0: to the end of the file */

    uint64_t address;
};

/* The command line of raw input. Initialise with {0}; dec_raw_free frees it. Every option may be repeated
 * where a list stands; the functions have the form of st_opt_fn (base/opt.h) with `to` a struct dec_raw, and
 * return ST_EUSAGE naming the word that is wrong. */
struct dec_raw {
    ST_VEC(const char *) traces; /* --raw TRACE, one a thread; point into argv */

    ST_VEC(struct dec_raw_image) images;

    const char *list; /* --images LIST, the last one; NULL: none. Points into argv */

    struct dec_pt_config config;

    bool has_cpu, has_clock;

    long threads; /* how many; 0: as there are CPUs. Of every kind of input */

    bool reference; /* as in struct dec_flow_options; of every kind of input */

    bool terse; /* likewise, of raw input; no option */
};

int dec_raw_trace(void *to, const char *text, struct st_error *err);
int dec_raw_image(void *to, const char *text,
                  struct st_error *err); /* --image FILE[:OFFSET[:SIZE]]@ADDRESS */
int dec_raw_images(void *to, const char *text,
                   struct st_error *err); /* --images LIST: a line FILE OFFSET SIZE ADDRESS each;
                                             FILE is relative to the folder of LIST */
int dec_raw_cpu(void *to, const char *text, struct st_error *err);      /* --cpu FAM/MODEL/STEP, decimal */
int dec_raw_time(void *to, const char *text, struct st_error *err);     /* --time MULT:SHIFT:ZERO */
int dec_raw_mtc_freq(void *to, const char *text, struct st_error *err); /* --mtc-freq N */
int dec_raw_nom_freq(void *to, const char *text, struct st_error *err); /* --nom-freq N */
int dec_raw_cpuid15(void *to, const char *text, struct st_error *err);  /* --cpuid15 EAX/EBX */
int dec_raw_bits(void *to, const char *text,
                 struct st_error *err); /* --bits 32|64: the images' code where the trace does not say */
void dec_raw_free(struct dec_raw *raw);

/* What raw input decodes to. Owned by the caller: dec_raw_result_free. */
struct dec_raw_result {
    struct dec_images *images;

    struct dec_space *space; /* of the one process; for symbol lookups while the events come */

    struct dec_flow_counts counts;
};

/* Opens the images and lays out the address space. ST_EFAIL: a file cannot be opened, with its name;
 * ST_EUSAGE: no trace, an offset behind the end of its file, two images that overlap. *result is empty on
 * error. */
int dec_raw_open(const struct dec_raw *raw, struct dec_raw_result *result, struct st_error *err);

/* Decodes every trace in turn and adds to result->counts; trace i is ring i, thread i + 1 of process 1 (there
 * is no side-band), on CPU -1. emit may be NULL. ST_EFAIL: a trace cannot be read, with its name; else as
 * dec_flow_run. */
int dec_raw_run(const struct dec_raw *raw, dec_emit_fn *emit, void *emit_ctx, struct dec_raw_result *result,
                struct st_error *err);

/* `--dump packets` of every trace. Needs no images. */
int dec_raw_packets(const struct dec_raw *raw, FILE *out, struct st_error *err);

/* The number of threads to use. */
unsigned dec_raw_threads(const struct dec_raw *raw);

void dec_raw_result_free(struct dec_raw_result *result);

#endif
