/* Code files: what stood behind a mapping when it was recorded. Opened once a (path, build id), read on
 * demand, never trusted.
 *
 * Where the bytes of a file are looked for, in this order; the first that opens and has the wanted build id
 * wins:
 *   1. SYMFS + path (SYMFS empty: the path itself);
 *   2. DIR/.build-id/xx/rest and DIR/.build-id/xx/rest/{elf,vdso} of every build-id folder (perf's cache,
 * ~/.debug);
 *   3. for [vdso]: the vdso of this very process, when the options allow it.
 * A mapping whose build id is not known takes the first file that opens. One that has none of the code is an
 * image all the same: its state says why, and a decoder that comes there reports a gap, not an error. */
#ifndef ST_DECODER_IMAGE_IMAGE_H
#define ST_DECODER_IMAGE_IMAGE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DEC_BUILD_ID_MAX = 20 };

enum dec_image_state {
    DEC_IMAGE_OK,
    DEC_IMAGE_MISSING, /* no such file: DEC_GAP_NO_IMAGE */
    DEC_IMAGE_STALE,   /* deleted, or only files with another build id: DEC_GAP_STALE_FILE */
    DEC_IMAGE_JIT,     /* anonymous memory, never a file: DEC_GAP_JIT */
};

/* Read-only for everybody but this folder, `tag` apart. Owned by the store, lives as long as it.
 */
struct dec_image {
    const char *path; /* as the mapping named it, " (deleted)" cut off */

    const char *name; /* the part behind the last '/', or the whole of "[vdso]" and the like */

    const char
        *opened; /* the file that the bytes come from; NULL: none (state, or bytes given by the caller) */

    const char *detail; /* why state is not OK, as a sentence without a full stop; "" when OK */

    enum dec_image_state state;

    bool kernel;

    uint8_t build_id[DEC_BUILD_ID_MAX]; /* of the mapping if recorded, else of the file */

    uint8_t build_id_size; /* 0: none */

    uint64_t size; /* bytes that can be read; 0 unless OK */

    int64_t tag; /* for the user of the image (a database id); 0 at first */
};

/* The caller keeps the strings alive as long as the store. */
struct dec_images_options {
    const char *symfs; /* NULL or "": none */

    const char *const *build_id_dirs; /* perf's --buildid-dir; searched in order */

    size_t nbuild_id_dirs;

    const char *const *debug_dirs; /* of separate debug files; NULL: { "/usr/lib/debug" } */

    size_t ndebug_dirs;

    bool own_vdso; /* the recording is of this boot: this process's vdso may stand in (where its build id
                      fits, if recorded) */

    int (*open)(void *ctx, const char *path); /* a read-only descriptor or -1 with errno; NULL: open(2) */

    void *open_ctx;
};

/* What a mapping says about its file. */
struct dec_image_id {
    const char *path;

    const uint8_t *build_id;

    size_t build_id_size; /* 0: unknown; longer ones are cut to DEC_BUILD_ID_MAX */

    int32_t pid; /* anonymous code ("//anon", "[heap]", "/memfd:...") is one image a process */

    bool kernel;
};

struct dec_images;

/* Makes an empty store. options may be NULL (all defaults). ST_ENOMEM. */
int dec_images_new(const struct dec_images_options *options, struct dec_images **images,
                   struct st_error *err);

/* Frees the store, its images and their symbols. NULL is allowed. */
void dec_images_free(struct dec_images *images);

/* The image of a file, opened at the first call. A file that cannot be had is no error (see state).
 * ST_ENOMEM. */
int dec_images_get(struct dec_images *images, const struct dec_image_id *id, struct dec_image **image,
                   struct st_error *err);

/* An image of `size` bytes that the caller hands over (malloc'd; freed with the store, also on error): JIT
 * code, a vdso. Each call makes a new one. ST_ENOMEM. */
int dec_images_add_bytes(struct dec_images *images, const char *name, uint8_t *bytes, size_t size,
                         struct dec_image **image, struct st_error *err);

/* All images in the order they appeared. */
size_t dec_images_count(const struct dec_images *images);
struct dec_image *dec_images_at(const struct dec_images *images, size_t index);

/* Copies up to n bytes of the file at `offset` to buf. Returns how many there were: 0 beyond the end, or
 * where the file cannot be read (it is then marked STALE with the reason). */
size_t dec_image_read(struct dec_image *image, uint64_t offset, void *buf, size_t n);

/* The descriptor of the image's file, which stays the store's; -1: it has none. */
int dec_image_descriptor(const struct dec_image *image);

/* What a gap at code of this image is called (enum dec_gap); 0 when the image has its bytes. */
int dec_image_gap(const struct dec_image *image);

#endif
