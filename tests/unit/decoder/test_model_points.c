/* What the call chain of a context switch tells of the system call that the thread waits in. */
#include "recording.h"

#include "decoder/model/model_impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MS = 1000 * 1000, SLEEPING = 1, IDLE = 0x80 };

#define K(x) (0xffffffff81000000 + (x))

static int set_up(void **state)
{
    static const struct recording_name names[] = {
        {K(0x110), K(0x100), "do_syscall_64"},  {K(0x210), K(0x200), "do_exit"},
        {K(0x310), K(0x300), "schedule"},       {K(0x410), K(0x400), "get_signal"},
        {K(0x510), K(0x500), "__x64_sys_exit"}, {K(0x610), K(0x600), "exit_to_user_mode_loop"},
        {K(0x710), K(0x700), "do_epoll_wait"}};

    (void)state;
    recording_begin();
    recording_at(1 * MS, 10, 10, 0);
    recording_comm(10, 10, "prog", false);
    recording_mmap(10, 0x400000, 0x10000, 0, "/nowhere/prog");
    recording_names(names, 7);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    recording_remove();
    return 0;
}

/* The thread left its CPU in a state with frames of the kernel, innermost first. */
static void left(uint64_t time, int64_t state, const uint64_t *kernel, unsigned n)
{
    uint64_t chain[16] = {PERF_CONTEXT_KERNEL};

    memcpy(chain + 1, kernel, n * sizeof(*kernel));
    chain[n + 1] = PERF_CONTEXT_USER;
    chain[n + 2] = 0x400010;
    recording_at(time, 10, 10, 0);
    recording_left(state, chain, n + 3);
}

/* The marks, one a line. */
static const char *marks(void)
{
    static char text[1024];
    struct st_error err = {0};
    struct pd_reader *reader = NULL;
    struct dec_images *images = NULL;
    struct dec_sideband *sb = NULL;
    struct dec_model *model = NULL;
    size_t n = 0;

    recording_end();
    if (pd_reader_open(recording_path(), &reader, &err) || dec_images_new(NULL, &images, &err) ||
        dec_sideband_read(reader, images, &sb, &err) || dec_model_new(sb, NULL, &model, &err) ||
        dec_model_samples(model, &err))
        fail_msg("%s", err.text);
    text[0] = '\0';
    for (size_t i = 0; i < model->marks.n; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s: %s\n", model->marks.at[i].name,
                              model->marks.at[i].detail);
    dec_model_free(model);
    dec_sideband_free(sb);
    dec_images_free(images);
    pd_reader_close(reader);
    return text;
}

static void a_wait_is_in_the_system_call_of_its_chain(void **state)
{
    const uint64_t exits[] = {K(0x310), K(0x210), K(0x510), K(0x110)};
    const uint64_t waits[] = {K(0x310), K(0x710), K(0x110)};

    (void)state;
    left(2 * MS, SLEEPING, waits, 3);
    left(3 * MS, IDLE, exits, 4);
    assert_string_equal(marks(), "offcpu: sleeping in epoll_wait\noffcpu: idle in exit\n");
}

/* On the way back to the program: do_exit() is called there, and the program called another. */
static void a_signal_that_ends_a_thread_is_no_system_call(void **state)
{
    const uint64_t killed[] = {K(0x310), K(0x210), K(0x410), K(0x610), K(0x110)};

    (void)state;
    left(2 * MS, IDLE, killed, 5);
    assert_string_equal(marks(), "offcpu: idle\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_wait_is_in_the_system_call_of_its_chain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_signal_that_ends_a_thread_is_no_system_call, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
