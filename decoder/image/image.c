/* The store of code files and their bytes. */
#include "decoder/image/image_impl.h"

#include "decoder/event/event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUCKETS = 1024 };

static const uint64_t MAX_SIZE = (uint64_t)1 << 36; /* of a file; what lies beyond is not read */

int dec_images_new(const struct dec_images_options *options, struct dec_images **images, struct st_error *err)
{
    struct dec_images *store = calloc(1, sizeof(*store));
    if (store)
        store->buckets = calloc(BUCKETS, sizeof(struct image_file *));
    if (!store || !store->buckets) {
        free(store);
        return st_nomem(err, "the table of code files");
    }
    pthread_mutex_init(&store->lock, NULL);
    pthread_mutex_init(&store->symbols_lock, NULL);
    if (options)
        store->options = *options;
    *images = store;
    return 0;
}

static void free_file(struct image_file *file)
{
    if (!file)
        return;
    image_symbols_free(file->symbols);
    if (file->chunks) {
        for (uint64_t i = 0; i * IMAGE_CHUNK < file->pub.size; i++)
            free(file->chunks[i]);
    }
    free(file->chunks);
    free(file->bytes);
    if (file->fd >= 0)
        close(file->fd);
    free(file->strings);
    free(file->key);
    free(file);
}

void dec_images_free(struct dec_images *images)
{
    if (!images)
        return;
    for (size_t i = 0; i < images->n; i++)
        free_file(images->at[i]);
    free(images->at);
    free(images->buckets);
    pthread_mutex_destroy(&images->lock);
    pthread_mutex_destroy(&images->symbols_lock);
    free(images);
}

size_t dec_images_count(const struct dec_images *images)
{
    return images->n;
}

struct dec_image *dec_images_at(const struct dec_images *images, size_t index)
{
    return &images->at[index]->pub;
}

char *image_hex(const uint8_t *id, size_t size, char *buf)
{
    buf[0] = '\0';
    for (size_t i = 0; i < size; i++)
        snprintf(buf + 2 * i, 3, "%02x", id[i]);
    return buf;
}

static uint32_t hash(const char *key)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (; *key; key++)
        h = (h ^ (uint8_t)*key) * 16777619u;
    return h % BUCKETS;
}

/* Appends a string to the file's block and returns where it stands. */
static const char *keep(char **end, const char *text)
{
    char *start = *end;
    size_t n = strlen(text) + 1;
    memcpy(start, text, n);
    *end += n;
    return start;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return path[0] == '[' || !slash || !slash[1] ? path : slash + 1;
}

/* Sets the public strings from `found` and the path. */
static int set_strings(struct image_file *file, const char *path, const struct image_found *found)
{
    file->strings = malloc(strlen(path) + strlen(found->opened) + strlen(found->detail) + 3);
    if (!file->strings)
        return ST_ENOMEM;
    char *end = file->strings;
    file->pub.path = keep(&end, path);
    file->pub.name = base_name(file->pub.path);
    file->pub.detail = keep(&end, found->detail);
    file->pub.opened = found->opened[0] ? keep(&end, found->opened) : NULL;
    return 0;
}

/* How many bytes the image has, and room to read them in pieces. */
static int set_size(struct image_file *file, size_t nbytes)
{
    struct stat status;
    if (file->bytes) {
        file->pub.size = nbytes;
        return 0;
    }
    if (file->fd < 0 || fstat(file->fd, &status) || status.st_size <= 0)
        return 0;
    file->pub.size = (uint64_t)status.st_size < MAX_SIZE ? (uint64_t)status.st_size : MAX_SIZE;
    file->chunks = calloc(file->pub.size / IMAGE_CHUNK + 1, sizeof(*file->chunks));
    if (!file->chunks) {
        file->pub.size = 0;
        return ST_ENOMEM;
    }
    return 0;
}

static void set_placeholder(struct image_file *file)
{
    const char *form = file->pub.name[0] == '[' ? "%.280s" : "[%.280s]";
    snprintf(file->whole_name, sizeof(file->whole_name), form, file->pub.name);
    file->whole = (struct dec_symbol){
        .name = file->whole_name, .image = &file->pub, .size = UINT64_MAX, .flags = DEC_SYM_MADE_UP};
}

/* Takes over what was found, also on error, and puts the image into the store. */
static int add(struct dec_images *images, const char *key, const char *path, struct image_found *found,
               struct dec_image **image, struct st_error *err)
{
    struct image_file *file = calloc(1, sizeof(*file));
    if (!file) {
        free(found->bytes);
        if (found->fd >= 0)
            close(found->fd);
        return st_nomem(err, "a code file");
    }
    file->store = images;
    file->fd = found->fd;
    file->bytes = found->bytes;
    file->pub.state = found->state;
    file->pub.build_id_size = found->build_id_size;
    memcpy(file->pub.build_id, found->build_id, sizeof(found->build_id));
    file->key = key ? strdup(key) : NULL;
    if ((key && !file->key) || set_strings(file, path, found) || set_size(file, found->nbytes) ||
        st_vec_reserve_raw((void **)&images->at, &images->room, images->n, 1, sizeof(*images->at))) {
        free_file(file);
        return st_nomem(err, "a code file");
    }
    set_placeholder(file);
    images->at[images->n++] = file;
    if (key) {
        uint32_t bucket = hash(key);
        file->next = images->buckets[bucket];
        images->buckets[bucket] = file;
    }
    *image = &file->pub;
    return 0;
}

/* Memory without a file has one image a process, because what stood there is a matter of that process. */
static bool is_anonymous(const char *path)
{
    static const char *const prefixes[] = {"//anon",   "anon_inode:",    "/dev/zero", "/SYSV",
                                           "/memfd:",  "/anon_hugepage", "[heap]",    "[stack",
                                           "[uprobes", "[anon"};
    if (!*path)
        return true;
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    }
    return false;
}

static void describe_anonymous(const struct dec_image_id *id, struct image_found *found)
{
    found->state = DEC_IMAGE_JIT;
    if (strncmp(id->path, "[uprobes-", strlen("[uprobes-")) == 0)
        snprintf(found->detail, sizeof(found->detail),
                 "[uprobes-trampoline] holds code of the kernel's optimised uprobes, not of a file");
    else if (strncmp(id->path, "[uprobes", strlen("[uprobes")) == 0)
        snprintf(found->detail, sizeof(found->detail),
                 "%.32s holds code of the kernel's uprobes, not of a file", id->path);
    else
        snprintf(found->detail, sizeof(found->detail), "code in memory without a file (%.200s)",
                 *id->path ? id->path : "anonymous");
}

static struct image_file *lookup(const struct dec_images *images, const char *key)
{
    struct image_file *file = images->buckets[hash(key)];
    while (file && strcmp(file->key, key) != 0)
        file = file->next;
    return file;
}

/* The key tells files apart that must not be mixed up: by build id, by process where there is no file. */
static char *make_key(const struct dec_image_id *id, const char *path, bool anonymous)
{
    char hex[2 * DEC_BUILD_ID_MAX + 1], *key;
    size_t size = id->build_id_size < DEC_BUILD_ID_MAX ? id->build_id_size : DEC_BUILD_ID_MAX;
    image_hex(id->build_id, size, hex);
    if (asprintf(&key, "%d:%s:%s:%s", anonymous ? id->pid : 0, id->kernel ? "k" : "u", hex, path) < 0)
        return NULL;
    return key;
}

int dec_images_get(struct dec_images *images, const struct dec_image_id *id, struct dec_image **image,
                   struct st_error *err)
{
    static const char suffix[] = " (deleted)";
    size_t length = strlen(id->path), cut = sizeof(suffix) - 1;
    bool deleted = length > cut && strcmp(id->path + length - cut, suffix) == 0;
    bool anonymous = is_anonymous(id->path);
    char *path = strndup(id->path, deleted ? length - cut : length);
    char *key = path ? make_key(id, id->path, anonymous) : NULL;
    int rc = 0;
    struct image_file *known = key ? lookup(images, key) : NULL;
    struct image_found found = {.fd = -1};
    if (!key)
        rc = st_nomem(err, "a code file");
    else if (known)
        *image = &known->pub;
    else if (anonymous)
        describe_anonymous(id, &found);
    else
        rc = image_find(images, id, path, deleted, &found, err);
    if (rc == 0 && !known)
        rc = add(images, key, *path ? path : "//anon", &found, image, err);
    if (rc == 0)
        (*image)->kernel = id->kernel;
    free(key);
    free(path);
    return rc;
}

int dec_images_add_bytes(struct dec_images *images, const char *name, uint8_t *bytes, size_t size,
                         struct dec_image **image, struct st_error *err)
{
    struct image_found found = {.fd = -1, .bytes = bytes, .nbytes = size, .state = DEC_IMAGE_OK};
    return add(images, NULL, name, &found, image, err);
}

/* Reads a piece of the file; what lies behind its end, should it have shrunk, is a failure. */
static uint8_t *read_chunk(struct image_file *file, uint64_t index)
{
    uint64_t start = index * IMAGE_CHUNK;
    size_t want = file->pub.size - start < IMAGE_CHUNK ? (size_t)(file->pub.size - start) : IMAGE_CHUNK;
    uint8_t *bytes = malloc(want);
    size_t got = 0;
    while (bytes && got < want) {
        ssize_t n = pread(file->fd, bytes + got, want - got, (off_t)(start + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    if (got == want)
        return bytes;
    free(bytes);
    file->pub.state = DEC_IMAGE_STALE;
    file->pub.detail = "reading the file failed";
    return NULL;
}

static const uint8_t *chunk(struct image_file *file, uint64_t index)
{
    uint8_t *bytes = file->chunks[index];
    if (bytes)
        return bytes;
    pthread_mutex_lock(&file->store->lock);
    bytes = file->chunks[index];
    if (!bytes) {
        bytes = read_chunk(file, index);
        file->chunks[index] = bytes;
    }
    pthread_mutex_unlock(&file->store->lock);
    return bytes;
}

size_t dec_image_read(struct dec_image *image, uint64_t offset, void *buf, size_t n)
{
    struct image_file *file = image_file_of(image);
    if (image->state != DEC_IMAGE_OK || offset >= image->size)
        return 0;
    if (n > image->size - offset)
        n = (size_t)(image->size - offset);
    if (file->bytes) {
        memcpy(buf, file->bytes + offset, n);
        return n;
    }
    for (size_t done = 0; done < n;) {
        const uint8_t *bytes = chunk(file, (offset + done) / IMAGE_CHUNK);
        size_t skip = (offset + done) % IMAGE_CHUNK;
        size_t part = n - done < IMAGE_CHUNK - skip ? n - done : IMAGE_CHUNK - skip;
        if (!bytes)
            return done;
        memcpy((uint8_t *)buf + done, bytes + skip, part);
        done += part;
    }
    return n;
}

int dec_image_gap(const struct dec_image *image)
{
    switch (image->state) {
    case DEC_IMAGE_OK:
        return 0;
    case DEC_IMAGE_STALE:
        return DEC_GAP_STALE_FILE;
    case DEC_IMAGE_JIT:
        return DEC_GAP_JIT;
    default:
        return DEC_GAP_NO_IMAGE;
    }
}

int dec_image_descriptor(const struct dec_image *image)
{
    return image->state == DEC_IMAGE_OK ? ((const struct image_file *)image)->fd : -1;
}
