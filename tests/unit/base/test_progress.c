/* base/progress.h on a terminal: when the line comes, what it says, and that it goes. */
#include "base/log.h"
#include "base/progress.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static int master, saved;
static char text[65536];
static size_t length;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* stderr is a terminal from here on. */
static int set_up(void **state)
{
    int slave;

    (void)state;
    length = 0;
    text[0] = '\0';
    saved = dup(STDERR_FILENO);
    if (openpty(&master, &slave, NULL, NULL, NULL) || dup2(slave, STDERR_FILENO) < 0)
        return -1;
    close(slave);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    st_progress_end();
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(master);
    unsetenv("STALLTRAP_PROGRESS");
    return 0;
}

static void take(int ms)
{
    struct pollfd p = {.fd = master, .events = POLLIN};

    while (poll(&p, 1, ms) > 0 && length < sizeof(text) - 1) {
        ssize_t n = read(master, text + length, sizeof(text) - 1 - length);

        if (n <= 0)
            break;
        length += (size_t)n;
        text[length] = '\0';
        ms = 0;
    }
}

static bool shows(const char *words)
{
    double end = now() + 20;

    while (!strstr(text, words) && now() < end)
        take(100);
    return strstr(text, words);
}

static void shows_what_and_how_far(void **state)
{
    (void)state;
    setenv("STALLTRAP_PROGRESS", "0", 1);
    st_progress("doing it", 200);
    assert_true(shows("\rdoing it: 0 %\033[K"));
    st_progress_add(84);
    assert_true(shows("\rdoing it: 42 %\033[K"));
    st_progress_add(1000);
    assert_true(shows("\rdoing it: 100 %\033[K")); /* never more */
    st_progress("the rest", 10);
    assert_true(shows("\rthe rest: 0 %\033[K"));
    st_progress("that takes long", 0);
    assert_true(shows("\rthat takes long: ")); /* a thread that misses a second shows another */
    assert_true(shows(" s\033[K"));
    st_progress_end();
    take(0);
    assert_string_equal(text + length - 4, "\r\033[K");
}

static void messages_have_lines_of_their_own(void **state)
{
    (void)state;
    setenv("STALLTRAP_PROGRESS", "0", 1);
    st_progress("doing it", 2);
    st_log_warn("look");
    assert_true(shows("doing it: 0 %\033[K\r\033[Kstalltrap: warning: look\r\n"));
}

static void waits_a_second(void **state)
{
    double begin = now();

    (void)state;
    st_progress("doing it", 2);
    while (now() < begin + 0.5)
        take(50);
    assert_true(length == 0 || now() >= begin + 1); /* a slow machine */
    assert_true(shows("doing it: 0 %"));
    assert_true(now() >= begin + 1);
}

static void short_work_shows_nothing(void **state)
{
    (void)state;
    setenv("STALLTRAP_PROGRESS", "3600", 1); /* of an hour, on any machine */
    st_progress("doing it", 2);
    st_progress_add(1);
    st_progress_end();
    st_progress_end();
    take(50);
    assert_int_equal(length, 0);
    setenv("STALLTRAP_PROGRESS", "off", 1);
    st_progress("doing it", 2);
    take(300);
    assert_int_equal(length, 0);
}

static void no_terminal_no_line(void **state)
{
    int file = open("/dev/null", O_WRONLY);

    (void)state;
    setenv("STALLTRAP_PROGRESS", "0", 1);
    dup2(file, STDERR_FILENO);
    close(file);
    st_progress("doing it", 2);
    assert_false(atomic_load(&st_progress_on));
    st_progress_add(1);
    st_progress_hide();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shows_what_and_how_far, set_up, tear_down),
        cmocka_unit_test_setup_teardown(messages_have_lines_of_their_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(waits_a_second, set_up, tear_down),
        cmocka_unit_test_setup_teardown(short_work_shows_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_terminal_no_line, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
