/* What image.c, find.c and symbols.c share. Of other folders only decoder/dwarf/debug_tables.h includes it.
 */
#ifndef ST_DECODER_IMAGE_IMAGE_IMPL_H
#define ST_DECODER_IMAGE_IMAGE_IMPL_H

#include "decoder/image/elf.h"
#include "decoder/image/image.h"
#include "decoder/image/symbols.h"

#include <pthread.h>

enum {
    IMAGE_CHUNK = 16384 /* bytes read from a file at once */
};

struct image_symbols; /* symbols.c */
struct image_lines;   /* lines.c */

/* struct dec_image as the store keeps it: the public part comes first. */
struct image_file {
    struct dec_image pub;

    struct dec_images *store;

    char *key; /* what it is found by */

    char *strings; /* path, opened and detail of the public part stand in here */

    int fd; /* -1: none */

    uint8_t *bytes; /* the caller's bytes, or NULL */

    uint8_t *_Atomic *chunks; /* of the file, NULL where not read yet */

    struct image_symbols *symbols; /* NULL until the first lookup */

    struct image_lines *lines; /* of the process that reads them */

    bool no_lines; /* it has no line tables */

    struct dec_symbol whole; /* the placeholder where nothing better is known; its name follows */

    char whole_name[300];

    struct image_file *next; /* in the store's hash bucket */
};

static inline struct image_file *image_file_of(struct dec_image *image)
{
    return (struct image_file *)image;
}

struct dec_images {
    struct dec_images_options options;

    struct image_file **at;

    size_t n, room;

    struct image_file **buckets;

    pthread_mutex_t lock; /* while a piece of a file is read: several threads ask for bytes */

    pthread_mutex_t symbols_lock; /* of all that is made of symbols when one is first asked for */
};

/* What image_find() found. */
struct image_found {
    int fd; /* -1: none */

    uint8_t *bytes; /* instead of a descriptor; malloc'd */

    size_t nbytes;

    char opened[4096];

    enum dec_image_state state;

    char detail[512];

    uint8_t build_id[DEC_BUILD_ID_MAX];

    uint8_t build_id_size;
};

/* Looks for the file of `id` by the rules of image.h. ST_ENOMEM, else 0 with state and detail. */
int image_find(const struct dec_images *images, const struct dec_image_id *id, const char *path, bool deleted,
               struct image_found *found, struct st_error *err);

/* Opens a separate debug file that belongs to the image: by build id, else by .gnu_debuglink. -1: none. */
int image_find_debug(const struct image_file *image, const struct dec_elf *elf);

/* A read-only descriptor of a regular file through the options' open(), or -1 with errno. */
int image_open(const struct dec_images *images, const char *path);

/* The bytes of a build id in hex; buf needs 2 * DEC_BUILD_ID_MAX + 1. Returns buf. */
char *image_hex(const uint8_t *id, size_t size, char *buf);

/* Frees what symbols.c keeps. NULL is allowed. */
void image_symbols_free(struct image_symbols *symbols);

#endif
