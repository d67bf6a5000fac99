/* Code files: where they are looked for, and what is said when they are not there. */
#include "elf_maker.h"

#include "decoder/event/event.h"
#include "decoder/image/image.h"

#define ID  "0123456789abcdefghij"
#define ID2 "ABCDEFGHIJabcdefghij"

static char folder[] = "/tmp/st-image-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[8][512];
    static unsigned turn;
    char *p = path[turn++ % 8];
    snprintf(p, sizeof(path[0]), "%s/%s", folder, name);
    return p;
}

static void make(const char *path, const char *id)
{
    struct maker m;
    uint8_t note[36], code[0x200];
    memset(code, 0x90, sizeof(code));
    maker_open(&m, path);
    maker_text(&m, code);
    if (id)
        maker_build_id(&m, note, id);
    maker_close(&m, 0);
}

static int setup(void **state)
{
    struct dec_images *images;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    if (!mkdtemp(folder) || dec_images_new(NULL, &images, NULL))
        return -1;
    *state = images;
    return 0;
}

static int teardown(void **state)
{
    char command[600];
    dec_images_free(*state);
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static struct dec_image *get(struct dec_images *images, const char *path, const char *id)
{
    struct dec_image_id wanted = {
        .path = path, .build_id = (const uint8_t *)id, .build_id_size = id ? 20 : 0, .pid = 77};
    struct dec_image *image = NULL;
    assert_int_equal(dec_images_get(images, &wanted, &image, NULL), 0);
    assert_non_null(image);
    return image;
}

static void a_file_is_read_by_its_path(void **state)
{
    uint8_t bytes[8];
    make(in_folder("lib.so"), ID);
    struct dec_image *image = get(*state, in_folder("lib.so"), NULL);
    assert_int_equal(image->state, DEC_IMAGE_OK);
    assert_string_equal(image->name, "lib.so");
    assert_string_equal(image->path, in_folder("lib.so"));
    assert_memory_equal(image->build_id, ID, 20);
    assert_int_equal(dec_image_gap(image), 0);
    assert_int_equal(dec_image_read(image, 0, bytes, 4), 4);
    assert_memory_equal(bytes, "\177ELF", 4);
    assert_int_equal(dec_image_read(image, 0x1000, bytes, 8), 8);
    assert_memory_equal(bytes, "\x90\x90\x90\x90\x90\x90\x90\x90", 8);
    assert_int_equal(dec_image_read(image, image->size - 3, bytes, 8), 3);
    assert_int_equal(dec_image_read(image, image->size, bytes, 8), 0);
    assert_int_equal(dec_image_read(image, UINT64_MAX, bytes, 8), 0);
}

static void the_same_file_is_the_same_image(void **state)
{
    make(in_folder("lib.so"), ID);
    struct dec_image *image = get(*state, in_folder("lib.so"), ID);
    assert_ptr_equal(get(*state, in_folder("lib.so"), ID), image);
    assert_int_equal(dec_images_count(*state), 1);
    assert_ptr_equal(dec_images_at(*state, 0), image);
}

static void a_read_may_cross_the_pieces_a_file_is_read_in(void **state)
{
    uint8_t data[70000], back[70000];
    FILE *out = fopen(in_folder("data"), "w");
    assert_non_null(out);
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7 + i / 256);
    assert_int_equal(fwrite(data, 1, sizeof(data), out), sizeof(data));
    fclose(out);
    struct dec_image *image = get(*state, in_folder("data"), NULL);
    assert_int_equal(image->state, DEC_IMAGE_OK);
    assert_int_equal(dec_image_read(image, 3, back, sizeof(back)), sizeof(data) - 3);
    assert_memory_equal(back, data + 3, sizeof(data) - 3);
}

static void a_missing_file_is_no_error_but_a_named_gap(void **state)
{
    uint8_t byte;
    struct dec_image *image = get(*state, in_folder("nowhere.so"), NULL);
    assert_int_equal(image->state, DEC_IMAGE_MISSING);
    assert_int_equal(dec_image_gap(image), DEC_GAP_NO_IMAGE);
    assert_non_null(strstr(image->detail, "nowhere.so"));
    assert_int_equal(dec_image_read(image, 0, &byte, 1), 0);
}

static void another_build_id_is_a_stale_file(void **state)
{
    make(in_folder("lib.so"), ID2);
    struct dec_image *image = get(*state, in_folder("lib.so"), ID);
    assert_int_equal(image->state, DEC_IMAGE_STALE);
    assert_int_equal(dec_image_gap(image), DEC_GAP_STALE_FILE);
    assert_non_null(strstr(image->detail, "lib.so"));
    assert_non_null(strstr(image->detail, "30313233343536373839")); /* the id that was mapped */
    assert_memory_equal(image->build_id, ID, 20);
}

static void a_file_without_the_wanted_build_id_is_stale_too(void **state)
{
    make(in_folder("lib.so"), NULL);
    assert_int_equal(get(*state, in_folder("lib.so"), ID)->state, DEC_IMAGE_STALE);
}

static void a_deleted_file_is_found_again_by_its_build_id_only(void **state)
{
    char deleted[600];
    make(in_folder("lib.so"), ID);
    snprintf(deleted, sizeof(deleted), "%s (deleted)", in_folder("lib.so"));
    struct dec_image *image = get(*state, deleted, NULL);
    assert_int_equal(image->state, DEC_IMAGE_STALE);
    assert_non_null(strstr(image->detail, "deleted"));
    assert_string_equal(image->name, "lib.so");
    assert_int_equal(get(*state, deleted, ID)->state, DEC_IMAGE_OK);
    assert_int_equal(get(*state, deleted, ID2)->state, DEC_IMAGE_STALE);
}

static void make_folders(const char *const *names)
{
    for (; *names; names++)
        assert_int_equal(mkdir(in_folder(*names), 0700), 0);
}

static void perf_s_cache_of_build_ids_is_searched(void **state)
{
    static const char *const names[] = {"cache", "cache/.build-id", "cache/.build-id/30",
                                        "cache/.build-id/30/313233343536373839616263646566676869"
                                        "6a",
                                        NULL};
    char other[512], cache[512];
    const char *dirs[] = {other, cache};
    struct dec_images_options options = {.build_id_dirs = dirs, .nbuild_id_dirs = 2};
    struct dec_images *images;
    (void)state;
    strcpy(other, in_folder("other"));
    strcpy(cache, in_folder("cache"));
    make_folders(names);
    make(in_folder("cache/.build-id/30/3132333435363738396162636465666768696a/elf"), ID);
    make(in_folder("lib.so"), ID2); /* the path has another by now */
    assert_int_equal(dec_images_new(&options, &images, NULL), 0);
    struct dec_image *image = get(images, in_folder("lib.so"), ID);
    assert_int_equal(image->state, DEC_IMAGE_OK);
    assert_non_null(strstr(image->opened, "cache/.build-id/30/"));
    assert_string_equal(image->name, "lib.so");
    dec_images_free(images);
}

static void symfs_stands_before_every_path(void **state)
{
    static const char *const names[] = {"root", "root/usr", NULL};
    char root[512];
    struct dec_images_options options = {.symfs = root};
    struct dec_images *images;
    (void)state;
    make_folders(names);
    make(in_folder("root/usr/lib.so"), ID);
    snprintf(root, sizeof(root), "%s", in_folder("root"));
    assert_int_equal(dec_images_new(&options, &images, NULL), 0);
    assert_int_equal(get(images, "/usr/lib.so", ID)->state, DEC_IMAGE_OK);
    assert_string_equal(get(images, "/usr/lib.so", ID)->path, "/usr/lib.so");
    dec_images_free(images);
}

static void memory_without_a_file_is_one_image_a_process(void **state)
{
    struct dec_image_id id = {.path = "//anon", .pid = 1};
    struct dec_image *one, *two;
    assert_int_equal(dec_images_get(*state, &id, &one, NULL), 0);
    id.pid = 2;
    assert_int_equal(dec_images_get(*state, &id, &two, NULL), 0);
    assert_ptr_not_equal(one, two);
    assert_int_equal(one->state, DEC_IMAGE_JIT);
    assert_int_equal(dec_image_gap(one), DEC_GAP_JIT);
    static const char *const others[] = {"",          "[heap]",         "/memfd:jit (deleted)",
                                         "[uprobes]", "anon_inode:[x]", "/dev/zero"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_int_equal(get(*state, others[i], NULL)->state, DEC_IMAGE_JIT);
    assert_non_null(strstr(get(*state, "[uprobes]", NULL)->detail, "uprobes"));
}

static void the_vdso_of_this_boot_is_our_own(void **state)
{
    struct dec_images_options options = {.own_vdso = true};
    struct dec_images *images;
    uint8_t magic[4];
    assert_int_equal(get(*state, "[vdso]", NULL)->state, DEC_IMAGE_MISSING); /* not without being told so */
    assert_int_equal(dec_images_new(&options, &images, NULL), 0);
    struct dec_image *vdso = get(images, "[vdso]", NULL);
    assert_int_equal(vdso->state, DEC_IMAGE_OK);
    assert_string_equal(vdso->name, "[vdso]");
    assert_int_equal(dec_image_read(vdso, 0, magic, 4), 4);
    assert_memory_equal(magic, "\177ELF", 4);
    assert_int_equal(vdso->build_id_size, 20);
    assert_int_equal(get(images, "[vdso]", ID)->state, DEC_IMAGE_STALE); /* another kernel's */
    dec_images_free(images);
}

static void what_is_no_regular_file_is_not_opened(void **state)
{
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    assert_int_equal(get(*state, in_folder("fifo"), NULL)->state, DEC_IMAGE_MISSING);
    assert_int_equal(get(*state, folder, NULL)->state, DEC_IMAGE_MISSING);
    assert_int_equal(get(*state, "/dev/null", NULL)->state, DEC_IMAGE_MISSING);
}

static void a_file_that_shrinks_while_it_is_read_is_a_gap(void **state)
{
    uint8_t bytes[16];
    make(in_folder("lib.so"), NULL);
    struct dec_image *image = get(*state, in_folder("lib.so"), NULL);
    assert_int_equal(truncate(in_folder("lib.so"), 100), 0);
    assert_int_equal(dec_image_read(image, 0x1000, bytes, sizeof(bytes)), 0);
    assert_int_equal(dec_image_gap(image), DEC_GAP_STALE_FILE);
}

static int refuse_all(void *ctx, const char *path)
{
    (void)path;
    ++*(int *)ctx;
    return -1;
}

static void files_are_opened_through_the_caller_s_function(void **state)
{
    int calls = 0;
    struct dec_images_options options = {.open = refuse_all, .open_ctx = &calls};
    struct dec_images *images;
    (void)state;
    make(in_folder("lib.so"), ID);
    assert_int_equal(dec_images_new(&options, &images, NULL), 0);
    assert_int_equal(get(images, in_folder("lib.so"), NULL)->state, DEC_IMAGE_MISSING);
    assert_true(calls > 0);
    dec_images_free(images);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_read_by_its_path, setup, teardown),
        cmocka_unit_test_setup_teardown(the_same_file_is_the_same_image, setup, teardown),
        cmocka_unit_test_setup_teardown(a_read_may_cross_the_pieces_a_file_is_read_in, setup, teardown),
        cmocka_unit_test_setup_teardown(a_missing_file_is_no_error_but_a_named_gap, setup, teardown),
        cmocka_unit_test_setup_teardown(another_build_id_is_a_stale_file, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_without_the_wanted_build_id_is_stale_too, setup, teardown),
        cmocka_unit_test_setup_teardown(a_deleted_file_is_found_again_by_its_build_id_only, setup, teardown),
        cmocka_unit_test_setup_teardown(perf_s_cache_of_build_ids_is_searched, setup, teardown),
        cmocka_unit_test_setup_teardown(symfs_stands_before_every_path, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_without_a_file_is_one_image_a_process, setup, teardown),
        cmocka_unit_test_setup_teardown(the_vdso_of_this_boot_is_our_own, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_regular_file_is_not_opened, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_shrinks_while_it_is_read_is_a_gap, setup, teardown),
        cmocka_unit_test_setup_teardown(files_are_opened_through_the_caller_s_function, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
