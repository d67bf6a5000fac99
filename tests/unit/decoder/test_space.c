/* Address spaces over time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decoder/image/space.h"

#include <stdlib.h>
#include <string.h>

struct fixture {
    struct dec_images *images;

    struct dec_space *space;

    struct dec_image *a, *b;
};

static struct dec_image *bytes_image(struct dec_images *images, const char *name, uint8_t fill)
{
    struct dec_image *image;
    uint8_t *bytes = malloc(0x4000);
    assert_non_null(bytes);
    memset(bytes, fill, 0x4000);
    assert_int_equal(dec_images_add_bytes(images, name, bytes, 0x4000, &image, NULL), 0);
    return image;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    if (!f || dec_images_new(NULL, &f->images, NULL) || dec_space_new(NULL, &f->space, NULL))
        return -1;
    f->a = bytes_image(f->images, "a", 0xaa);
    f->b = bytes_image(f->images, "b", 0xbb);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    dec_space_free(f->space);
    dec_images_free(f->images);
    free(f);
    return 0;
}

static void map(struct fixture *f, uint64_t time, uint64_t address, uint64_t length, uint64_t pgoff,
                struct dec_image *image)
{
    assert_int_equal(dec_space_map(f->space, time, address, length, pgoff, image, NULL), 0);
}

/* Which image stands where, and with which file offset. */
static void assert_at(const struct dec_space *space, uint64_t time, uint64_t address,
                      const struct dec_image *image, uint64_t offset)
{
    const struct dec_mapping *mapping = dec_space_find(space, time, address);
    if (!image) {
        assert_null(mapping);
        return;
    }
    assert_non_null(mapping);
    assert_string_equal(mapping->image->name, image->name);
    assert_int_equal(mapping->pgoff + (address - mapping->start), offset);
}

static void an_address_is_found_within_its_mapping_only(void **state)
{
    struct fixture *f = *state;
    map(f, 0, 0x1000, 0x1000, 0x200, f->a);
    assert_at(f->space, 5, 0xfff, NULL, 0);
    assert_at(f->space, 5, 0x1000, f->a, 0x200);
    assert_at(f->space, 5, 0x1fff, f->a, 0x11ff);
    assert_at(f->space, 5, 0x2000, NULL, 0);
}

static void a_later_mapping_replaces_what_it_covers(void **state)
{
    struct fixture *f = *state;
    map(f, 10, 0x1000, 0x3000, 0, f->a);
    map(f, 20, 0x2000, 0x1000, 0x100, f->b); /* the middle */
    assert_at(f->space, 15, 0x2800, f->a, 0x1800);
    assert_at(f->space, 20, 0x2800, f->b, 0x900);
    assert_at(f->space, 25, 0x1800, f->a, 0x800);
    assert_at(f->space, 25, 0x3800, f->a, 0x2800);
    map(f, 30, 0x0, 0x10000, 0, f->b); /* all of it */
    for (uint64_t address = 0x1000; address < 0x4000; address += 0x800) {
        assert_at(f->space, 30, address, f->b, address);
        assert_true(dec_space_find(f->space, 29, address)->until == 30);
    }
}

static void many_replacements_leave_one_mapping_at_every_time(void **state)
{
    struct fixture *f = *state;
    for (uint64_t time = 1; time <= 200; time++) {
        uint64_t start = (time * 7919) % 64, length = 1 + (time * 104729) % 16;
        map(f, time, start * 0x100, length * 0x100, time << 20, time % 2 ? f->a : f->b);
    }
    for (uint64_t time = 1; time <= 200; time += 3) {
        for (uint64_t page = 0; page < 80; page++) {
            uint64_t last = 0;
            for (uint64_t t = 1; t <= time; t++) {
                uint64_t start = (t * 7919) % 64, length = 1 + (t * 104729) % 16;
                if (page >= start && page < start + length)
                    last = t;
            }
            if (!last)
                continue;
            uint64_t start = (last * 7919) % 64;
            assert_at(f->space, time, page * 0x100 + 5, last % 2 ? f->a : f->b,
                      (last << 20) + (page - start) * 0x100 + 5);
        }
    }
}

static void what_is_not_mapped_yet_is_taken_from_later(void **state)
{
    struct fixture *f = *state;
    map(f, 100, 0x1000, 0x1000, 0, f->a);
    map(f, 200, 0x1000, 0x1000, 0, f->b);
    assert_at(f->space, 90, 0x1000, f->a, 0); /* the next, not the last */
    assert_at(f->space, 150, 0x1000, f->a, 0);
    assert_at(f->space, 250, 0x1000, f->b, 0);
}

static void exec_ends_every_mapping(void **state)
{
    struct fixture *f = *state;
    map(f, 10, 0x1000, 0x1000, 0, f->a);
    dec_space_exec(f->space, 20);
    map(f, 21, 0x5000, 0x1000, 0, f->b);
    assert_at(f->space, 19, 0x1000, f->a, 0);
    assert_at(f->space, 20, 0x1000, NULL, 0);
    assert_at(f->space, 30, 0x5000, f->b, 0);
}

static void a_child_begins_with_what_its_parent_has(void **state)
{
    struct fixture *f = *state;
    struct dec_space *child;
    map(f, 10, 0x1000, 0x1000, 0x10, f->a);
    map(f, 10, 0x3000, 0x1000, 0, f->a);
    map(f, 15, 0x3000, 0x1000, 0x20, f->b);
    assert_int_equal(dec_space_new(NULL, &child, NULL), 0);
    assert_int_equal(dec_space_fork(child, f->space, 20, NULL), 0);
    map(f, 30, 0x1000, 0x1000, 0, f->b); /* the parent's own */
    assert_at(child, 40, 0x1000, f->a, 0x10);
    assert_at(child, 40, 0x3000, f->b, 0x20);
    assert_int_equal(dec_space_count(child), 2);
    dec_space_exec(child, 50);
    assert_at(child, 60, 0x1000, NULL, 0);
    assert_at(f->space, 60, 0x1000, f->b, 0);
    dec_space_free(child);
}

static void the_upper_half_belongs_to_the_kernel(void **state)
{
    struct fixture *f = *state;
    struct dec_space *user;
    map(f, 0, 0xffffffff81000000, 0x1000, 0, f->b);
    assert_int_equal(dec_space_new(f->space, &user, NULL), 0);
    assert_int_equal(dec_space_map(user, 0, 0x1000, 0x1000, 0, f->a, NULL), 0);
    assert_at(user, 1, 0xffffffff81000010, f->b, 0x10);
    assert_at(user, 1, 0x1010, f->a, 0x10);
    dec_space_free(user);
}

static void reading_goes_across_mappings_and_stops_at_holes(void **state)
{
    struct fixture *f = *state;
    uint8_t bytes[16];
    map(f, 0, 0x1000, 0x1000, 0, f->a);
    map(f, 0, 0x2000, 0x1000, 0, f->b);
    assert_int_equal(dec_space_read(f->space, 1, 0x1ffd, bytes, 8), 8);
    assert_memory_equal(bytes, "\xaa\xaa\xaa\xbb\xbb\xbb\xbb\xbb", 8);
    assert_int_equal(dec_space_read(f->space, 1, 0x2ffe, bytes, 8), 2);
    assert_int_equal(dec_space_read(f->space, 1, 0x3000, bytes, 8), 0);
}

static void a_mapping_longer_than_its_file_has_no_bytes_there(void **state)
{
    struct fixture *f = *state;
    uint8_t bytes[16];
    map(f, 0, 0x1000, 0x10000, 0, f->a);
    assert_int_equal(dec_space_read(f->space, 1, 0x1000 + 0x3ffc, bytes, 8), 4);
    assert_int_equal(dec_space_read(f->space, 1, 0x1000 + 0x5000, bytes, 8), 0);
}

static void odd_lengths_do_no_harm(void **state)
{
    struct fixture *f = *state;
    map(f, 0, 0x1000, 0, 0, f->a);
    assert_int_equal(dec_space_count(f->space), 0);
    map(f, 1, 0x1000, UINT64_MAX, 0, f->a); /* as far as addresses go */
    assert_at(f->space, 2, UINT64_MAX - 1, f->a, UINT64_MAX - 1 - 0x1000);
    map(f, 3, UINT64_MAX - 10, 100, 0, f->b);
    assert_at(f->space, 4, UINT64_MAX - 5, f->b, 5);
    assert_at(f->space, 4, 0x1000, f->a, 0);
}

static void a_place_has_its_symbol_at_run_time_addresses(void **state)
{
    struct fixture *f = *state;
    struct dec_place place;
    map(f, 0, 0x7f0000001000, 0x2000, 0x1000, f->a);
    assert_int_equal(dec_image_add_symbol(f->a, 0x1100, 0x80, "work", NULL, NULL), 0);
    dec_space_symbol(f->space, 1, 0x7f0000001140, &place);
    assert_string_equal(place.symbol->name, "work");
    assert_int_equal(place.start, 0x7f0000001100);
    assert_int_equal(place.size, 0x80);
    dec_space_symbol(f->space, 1, 0x7f0000001800, &place);
    assert_string_equal(place.symbol->name, "[a]");
    assert_int_equal(place.start, 0x7f0000001000);
    dec_space_symbol(f->space, 1, 0x10, &place);
    assert_null(place.mapping);
    assert_null(place.symbol);
}

static void patch(struct fixture *f, uint64_t time, uint64_t address, const char *old, const char *fresh)
{
    struct dec_code_bytes before = {(const uint8_t *)old, strlen(old)},
                          after = {(const uint8_t *)fresh, strlen(fresh)};
    assert_int_equal(dec_space_patch(f->space, time, address, before, after, NULL), 0);
}

static void assert_bytes(const struct fixture *f, uint64_t time, uint64_t address, const char *expected)
{
    char buf[16] = {0};
    assert_int_equal(dec_space_read(f->space, time, address, buf, strlen(expected)), strlen(expected));
    assert_string_equal(buf, expected);
}

static void code_that_was_patched_is_read_as_it_was_at_the_time(void **state)
{
    struct fixture *f = *state;
    map(f, 0, 0x1000, 0x1000, 0x200, f->a);
    patch(f, 100, 0x1010, "old", "NEW");
    patch(f, 200, 0x1010, "NEW", "old");
    patch(f, 300, 0x1011, "", "**");
    assert_bytes(f, 99, 0x100f, "\xaaold\xaa");
    assert_bytes(f, 100, 0x100f, "\xaaNEW\xaa");
    assert_bytes(f, 250, 0x100f, "\xaaold\xaa");
    assert_bytes(f, 300, 0x100f, "\xaao**\xaa");
    /* It is the image's code still: its names and its offsets. */
    assert_at(f->space, 300, 0x1011, f->a, 0x211);
    assert_at(f->space, 50, 0x1010, f->a, 0x210);
    assert_int_equal(dec_space_stable(f->space, 150), 200);
}

static void a_patch_beyond_the_mapped_changes_what_is_mapped(void **state)
{
    struct fixture *f = *state;
    map(f, 0, 0x1000, 0x1000, 0, f->a);
    map(f, 0, 0x2000, 0x1000, 0, f->b);
    patch(f, 10, 0x1ffe, "abcd", "ABCD");
    patch(f, 10, 0x2ffe, "abcd", "ABCD");
    patch(f, 10, 0x9000, "abcd", "ABCD");
    map(f, 20, 0x2000, 0x1000, 0, f->a); /* new code in the place of what was patched */
    assert_bytes(f, 9, 0x1ffe, "abcd");
    assert_bytes(f, 10, 0x1ffe, "ABCD");
    assert_bytes(f, 10, 0x2ffe, "AB");
    assert_bytes(f, 20, 0x1ffe, "AB\xaa\xaa");
    assert_at(f->space, 10, 0x3000, NULL, 0);
    assert_at(f->space, 10, 0x9000, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_address_is_found_within_its_mapping_only, setup, teardown),
        cmocka_unit_test_setup_teardown(a_later_mapping_replaces_what_it_covers, setup, teardown),
        cmocka_unit_test_setup_teardown(many_replacements_leave_one_mapping_at_every_time, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_mapped_yet_is_taken_from_later, setup, teardown),
        cmocka_unit_test_setup_teardown(exec_ends_every_mapping, setup, teardown),
        cmocka_unit_test_setup_teardown(a_child_begins_with_what_its_parent_has, setup, teardown),
        cmocka_unit_test_setup_teardown(the_upper_half_belongs_to_the_kernel, setup, teardown),
        cmocka_unit_test_setup_teardown(reading_goes_across_mappings_and_stops_at_holes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_mapping_longer_than_its_file_has_no_bytes_there, setup, teardown),
        cmocka_unit_test_setup_teardown(odd_lengths_do_no_harm, setup, teardown),
        cmocka_unit_test_setup_teardown(a_place_has_its_symbol_at_run_time_addresses, setup, teardown),
        cmocka_unit_test_setup_teardown(code_that_was_patched_is_read_as_it_was_at_the_time, setup, teardown),
        cmocka_unit_test_setup_teardown(a_patch_beyond_the_mapped_changes_what_is_mapped, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
