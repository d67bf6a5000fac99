/* The frames of Python programs, as the programs themselves tell them: each thread of python.py waits
 * somewhere, and another one prints what sys._current_frames() has of it. */
#include "triggers/memory.h"
#include "triggers/python.h"

#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static pid_t started;
static FILE *told;

/* A program whose output is `told`. */
static void start(char *const *argv)
{
    int ends[2];

    assert_return_code(pipe(ends), 0);
    started = fork();
    assert_return_code(started, 0);
    if (!started) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execv(argv[0], argv);
        _exit(127);
    }
    close(ends[1]);
    told = fdopen(ends[0], "r");
    assert_non_null(told);
}

static int stop(void **state)
{
    (void)state;
    if (told)
        fclose(told);
    told = NULL;
    if (started > 0) {
        kill(started, SIGKILL);
        waitpid(started, NULL, 0);
    }
    started = 0;
    return 0;
}

static bool next_line(char *line, size_t size)
{
    if (!fgets(line, (int)size, told))
        return false;
    line[strcspn(line, "\n")] = '\0';
    return true;
}

/* Where there is little room the line's number is whole. */
static void compare_cut(int memory, const struct trg_python *python, const struct trg_python_frame *frame,
                        const char *text)
{
    const char *line = strrchr(text, ':');
    char cut[64];

    assert_true(trg_python_text(memory, python, frame, cut, sizeof(cut)));
    assert_non_null(line);
    assert_string_equal(strrchr(cut, ':'), line);
    if (strlen(text) < sizeof(cut) / 2)
        assert_string_equal(cut, text);
}

/* What is read of a thread, beside what the program tells until an empty line. Returns how many frames. */
static size_t compare_thread(int memory, const struct trg_python *python, pid_t tid)
{
    struct trg_python_frame frames[PYTHON_FRAMES];
    size_t n = trg_python_frames(memory, python, tid, frames), compared = 0;
    char text[2048], line[2048];

    for (size_t i = 0; i < n; i++) {
        if (!frames[i].code) /* the interpreter's own */
            continue;
        assert_true(trg_python_text(memory, python, &frames[i], text, sizeof(text)));
        assert_true(next_line(line, sizeof(line)));
        assert_string_equal(text, line);
        compare_cut(memory, python, &frames[i], text);
        compared++;
    }
    while (next_line(line, sizeof(line)) && *line) /* what has no room in `frames` */
        assert_true(n == PYTHON_FRAMES);
    return compared;
}

static void compare_program(char *interpreter)
{
    char line[2048], *argv[] = {interpreter, (char[]){PYTHON_PROGRAM}, NULL};
    struct trg_python python;
    size_t threads = 0, frames = 0;
    int memory, tid;

    start(argv);
    assert_true(next_line(line, sizeof(line)));
    assert_string_equal(line, "ready");
    if (!trg_python_find(started, &python))
        fail_msg("%s: not found, version %x", interpreter, python.version);
    memory = trg_memory_open(started);
    assert_return_code(memory, 0);
    while (next_line(line, sizeof(line)) && sscanf(line, "thread %d", &tid) == 1) {
        threads++;
        frames += compare_thread(memory, &python, tid);
    }
    assert_string_equal(line, "done");
    assert_int_equal(trg_python_frames(memory, &python, 1, (struct trg_python_frame[PYTHON_FRAMES]){{0}}), 0);
    close(memory);
    printf("%s: %x, %zu threads, %zu frames\n", interpreter, python.version, threads, frames);
    assert_true(threads >= 6 && frames >= 40);
}

/* All that are on this machine: Debian's, and those of pyenv. */
static void each_version(void **state)
{
    char pyenv[512];
    glob_t found;

    snprintf(pyenv, sizeof(pyenv), "%s/.pyenv/versions/3.1[1-4].*/bin/python3", getenv("HOME"));
    glob("/usr/bin/python3.1[1-4]", 0, NULL, &found);
    glob(pyenv, GLOB_APPEND, NULL, &found);
    assert_true(found.gl_pathc > 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        compare_program(found.gl_pathv[i]);
        stop(state);
    }
    globfree(&found);
}

static void what_is_no_python_has_no_frames(void **state)
{
    char *argv[] = {(char[]){"/bin/cat"}, NULL};
    struct trg_python python;

    (void)state;
    start(argv);
    usleep(100000);
    assert_false(trg_python_find(started, &python));
    assert_false(trg_python_find(0x3fffffff, &python));
    assert_false(trg_python_find(getpid(), &python));
    assert_int_equal(python.version, 0);
}

/* Memory that looks like an interpreter's and is not: nothing is read without end, nor found. */
static void broken_memory_ends(void **state)
{
    struct trg_python python = {.version = 0x30b02f0, .target.at = {.interpreter_next = 8, .thread_next = 8}};
    struct trg_python_frame frames[PYTHON_FRAMES];
    static uint64_t ring[64];
    int memory = trg_memory_open(getpid());
    char text[64];

    (void)state;
    assert_return_code(memory, 0);
    for (size_t i = 0; i < 64; i++)
        ring[i] = (uint64_t)ring;
    python.target.runtime = (uint64_t)ring;
    assert_int_equal(trg_python_frames(memory, &python, getpid(), frames), 0);
    ring[5] = (uint64_t)getpid();
    python.target.at.native_id = 5 * 8;
    assert_int_equal(trg_python_frames(memory, &python, getpid(), frames), PYTHON_FRAMES);
    assert_false(
        trg_python_text(memory, &python, &(struct trg_python_frame){(uint64_t)ring, 0}, text, sizeof(text)));
    assert_int_equal(trg_memory_symbol(memory, (uint64_t)ring, "Py_Version"), 0);
    close(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_version, stop),
        cmocka_unit_test_teardown(what_is_no_python_has_no_frames, stop),
        cmocka_unit_test_teardown(broken_memory_ends, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
