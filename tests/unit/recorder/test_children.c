/* Processes that the recorder starts: the command, the decoder without privilege, the actions; and those it
 * watches. This program stands in for the decoder: started as `decode IN -o OUT` it does what decoder_main
 * says. */
#include "base/loop.h"
#include "recorder/arm/alive.h"
#include "recorder/arm/child.h"
#include "recorder/arm/jobs.h"
#include "recorder/arm/launch.h"
#include "recorder/perf/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Copies the first byte of IN; says in OUT what it may do. "F" fails, "H" hangs, anything else is decoded. */
static int decoder_main(const char *in, const char *out)
{
    int from = open(in, O_RDONLY), to;
    char kind = 0;

    if (from < 0 || read(from, &kind, 1) != 1 || kind == 'F')
        return 1;
    if (kind == 'H')
        pause();
    to = open(out, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (to < 0)
        return 1;
    dprintf(to, "nice=%d group=%d\n", getpriority(PRIO_PROCESS, 0), getpgrp() == getpid());
    printf("wrote %s (12,345 calls, 9.8 ms of history)\n", out);
    return 0;
}

/* ------------------------------------------------------------------ a folder, and our stdout in a file of it
 */

struct place {
    char folder[64];

    int at; /* it, open */

    int loop, saved;

    char said[4096];
};

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof(*p));

    strcpy(p->folder, "/tmp/stalltrap-unit.XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    p->at = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    p->loop = rec_loop_open(NULL);
    p->saved = -1;
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;
    char command[128];

    close(p->loop);
    close(p->at);
    snprintf(command, sizeof(command), "rm -rf %s", p->folder);
    assert_int_equal(system(command), 0);
    free(p);
    return 0;
}

static char *path_of(struct place *p, const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, 256, "%s/%s", p->folder, name);
    return path;
}

static void put(struct place *p, const char *name, const char *text)
{
    int fd = open(path_of(p, name), O_CREAT | O_TRUNC | O_WRONLY, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static const char *get(struct place *p, const char *name)
{
    static char text[4096];
    int fd = open(path_of(p, name), O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (fd >= 0)
        close(fd);
    text[n < 0 ? 0 : n] = '\0';
    return text;
}

static void catch_stdout(struct place *p)
{
    int fd = open(path_of(p, "stdout"), O_CREAT | O_TRUNC | O_RDWR, 0600);

    fflush(stdout);
    p->saved = dup(STDOUT_FILENO);
    dup2(fd, STDOUT_FILENO);
    close(fd);
}

static const char *release_stdout(struct place *p)
{
    fflush(stdout);
    dup2(p->saved, STDOUT_FILENO);
    close(p->saved);
    snprintf(p->said, sizeof(p->said), "%s", get(p, "stdout"));
    return p->said;
}

/* ------------------------------------------------------------------ jobs */

static const struct rec_written *file_of(struct place *p, const char *name)
{
    static struct rec_written file;
    struct stat st;

    assert_int_equal(stat(path_of(p, name), &st), 0);
    file = (struct rec_written){.dev = st.st_dev, .ino = st.st_ino};
    return &file;
}

static const char *run_jobs(struct place *p, const struct rec_jobs_config *config, const char *db,
                            bool beside)
{
    struct st_error err = {0};
    struct rec_jobs *jobs;

    catch_stdout(p);
    assert_int_equal(rec_jobs_open(p->loop, config, &jobs, &err), 0);
    assert_int_equal(rec_jobs_add(jobs, path_of(p, "x.1.data"), path_of(p, db), file_of(p, "x.1.data"),
                                  "because", REC_JOB_ACTIONS | (beside ? REC_JOB_BESIDE : 0), &err),
                     0);
    assert_int_equal(rec_jobs_go(jobs, &err), 0);
    while (rec_jobs_busy(jobs))
        assert_int_equal(rec_loop_turn(p->loop, &err), 0);
    rec_jobs_close(jobs);
    return release_stdout(p);
}

static void decode_one(struct place *p, const char *db, bool beside, const char *expected)
{
    char told[256];

    put(p, "x.1.data", "ok");
    snprintf(told, sizeof(told), "wrote %s, %s (12,345 calls, 9.8 ms of history)\n", path_of(p, "x.1.data"),
             path_of(p, db));
    assert_string_equal(run_jobs(p, &(struct rec_jobs_config){.folder = p->at, .decode = true}, db, beside),
                        told);
    assert_string_equal(get(p, db), expected);
}

static void decoding_steps_back_beside_a_recording_that_goes_on(void **state)
{
    char expected[64];

    snprintf(expected, sizeof(expected), "nice=%d group=1\n", getpriority(PRIO_PROCESS, 0));
    decode_one(*state, "x.1.db", false, expected);
    decode_one(*state, "y.1.db", true, "nice=19 group=1\n");
}

static void another_file_of_that_name_is_not_decoded(void **state)
{
    static const struct rec_action actions[] = {
        {.kind = REC_ACTION_SHELL, .text = "a", .command = "printf '%s' \"${STALLTRAP_DB-none}\""}};
    struct place *p = *state;
    struct rec_jobs_config config = {.folder = p->at, .decode = true, .actions = actions, .nactions = 1};
    struct rec_written file;
    struct rec_jobs *jobs;
    char expected[512];

    put(p, "secret", "ok");
    put(p, "x.1.data", "ok");
    file = *file_of(p, "x.1.data");
    assert_int_equal(renameat(p->at, "x.1.data", p->at, "old"), 0);
    catch_stdout(p);
    assert_int_equal(rec_jobs_open(p->loop, &config, &jobs, NULL), 0);
    for (int i = 0; i < 3; i++) { /* none, a link, another file */
        if (i == 1)
            assert_int_equal(symlinkat("secret", p->at, "x.1.data"), 0);
        if (i == 2)
            assert_int_equal(renameat(p->at, "secret", p->at, "x.1.data"), 0);
        assert_int_equal(rec_jobs_add(jobs, path_of(p, "x.1.data"), path_of(p, "x.1.db"), &file, "because",
                                      REC_JOB_ACTIONS, NULL),
                         0);
        assert_int_equal(rec_jobs_go(jobs, NULL), 0);
        while (rec_jobs_busy(jobs))
            assert_int_equal(rec_loop_turn(p->loop, NULL), 0);
    }
    rec_jobs_close(jobs);
    snprintf(expected, sizeof(expected), "wrote %1$s\nnonewrote %1$s\nnonewrote %1$s\nnone",
             path_of(p, "x.1.data"));
    assert_string_equal(release_stdout(p), expected);
    assert_int_equal(access(path_of(p, "x.1.db"), F_OK), -1);
}

static void a_decoder_that_fails_leaves_the_snapshot(void **state)
{
    static const struct rec_action actions[] = {
        {.kind = REC_ACTION_SHELL,
         .command =
             "printf '%s %s %s' \"$STALLTRAP_REASON\" \"$STALLTRAP_DATA\" \"${STALLTRAP_DB-none}\"\n"}};
    struct place *p = *state;
    char expected[512];

    put(p, "x.1.data", "F");
    snprintf(expected, sizeof(expected), "wrote %s\nbecause %s none", path_of(p, "x.1.data"),
             path_of(p, "x.1.data"));
    assert_string_equal(
        run_jobs(
            p, &(struct rec_jobs_config){.folder = p->at, .decode = true, .actions = actions, .nactions = 1},
            "x.1.db", false),
        expected);
    assert_string_equal(get(p, "x.1.data"), "F");
    assert_int_equal(access(path_of(p, "x.1.db"), F_OK), -1);
}

static void jobs_wait_for_each_other(void **state)
{
    static const struct rec_action actions[] = {
        {.kind = REC_ACTION_SHELL, .text = "a", .command = "printf a"},
        {.kind = REC_ACTION_SHELL, .text = "b", .command = "printf b; test $STALLTRAP_REASON != two"},
        {.kind = REC_ACTION_SHELL, .text = "c", .command = "printf c"}};
    struct place *p = *state;
    const struct rec_written none = {0};
    struct rec_jobs_config config = {.actions = actions, .nactions = 3};
    struct st_error err = {0};
    struct rec_jobs *jobs;

    catch_stdout(p);
    assert_int_equal(rec_jobs_open(p->loop, &config, &jobs, &err), 0);
    assert_int_equal(rec_jobs_add(jobs, "1.data", "1.db", &none, "one", REC_JOB_ACTIONS, &err), 0);
    assert_int_equal(rec_jobs_add(jobs, "2.data", "2.db", &none, "two", REC_JOB_ACTIONS, &err), 0);
    assert_int_equal(rec_jobs_add(jobs, "3.data", "3.db", &none, "three", REC_JOB_ACTIONS, &err), 0);
    assert_int_equal(rec_jobs_go(jobs, &err), 0);
    assert_int_equal(rec_jobs_go(jobs, &err), 0);
    while (rec_jobs_busy(jobs))
        assert_int_equal(rec_loop_turn(p->loop, &err), 0);
    rec_jobs_close(jobs);
    assert_string_equal(release_stdout(p), "wrote 1.data\nabcwrote 2.data\nabwrote 3.data\nabc");
}

static void a_decoder_that_hangs_is_ended(void **state)
{
    struct place *p = *state;
    struct rec_jobs_config config = {.folder = p->at, .decode = true};
    struct st_error err = {0};
    struct rec_jobs *jobs;

    put(p, "x.1.data", "H");
    assert_int_equal(rec_jobs_open(p->loop, &config, &jobs, &err), 0);
    assert_int_equal(rec_jobs_add(jobs, path_of(p, "x.1.data"), path_of(p, "x.1.db"), file_of(p, "x.1.data"),
                                  "because", REC_JOB_ACTIONS, &err),
                     0);
    assert_int_equal(rec_jobs_go(jobs, &err), 0);
    assert_true(rec_jobs_busy(jobs));
    rec_jobs_close(jobs);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* ------------------------------------------------------------------ the command */

static void a_command_waits_until_it_may_go(void **state)
{
    struct place *p = *state;
    char command[256];
    char *argv[] = {"sh", "-c", command, NULL};
    struct rec_launch l;
    struct st_error err = {0};

    snprintf(command, sizeof(command), "echo ran >%s; exit 5", path_of(p, "proof"));
    assert_int_equal(rec_launch_open(&l, argv, &err), 0);
    usleep(50000);
    assert_string_equal(get(p, "proof"), "");
    assert_int_equal(rec_launch_go(&l, &err), 0);
    assert_int_equal(rec_launch_result(&l, "sh", &err), 0);
    rec_launch_close(&l);
    assert_true(wait(NULL) > 0);
    assert_string_equal(get(p, "proof"), "ran\n");
}

static void a_command_that_may_not_go_never_ran(void **state)
{
    struct place *p = *state;
    char command[256];
    char *argv[] = {"sh", "-c", command, NULL};
    struct rec_launch l;

    snprintf(command, sizeof(command), "echo ran >%s", path_of(p, "proof"));
    assert_int_equal(rec_launch_open(&l, argv, NULL), 0);
    rec_launch_close(&l);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_string_equal(get(p, "proof"), "");
}

static void a_command_that_cannot_be_run(void **state)
{
    struct place *p = *state;
    char script[256];
    char *missing[] = {"no-such-program-anywhere", NULL}, *folder[] = {p->folder, NULL},
         *broken[] = {script, NULL};
    struct rec_launch l;
    struct st_error err = {0};

    assert_int_equal(rec_launch_open(&l, missing, &err), ST_EFAIL);
    assert_string_equal(err.text, "cannot run 'no-such-program-anywhere': no such program in PATH");
    assert_int_equal(rec_launch_open(&l, folder, &err), ST_EFAIL);
    snprintf(script, sizeof(script), "%s", path_of(p, "script"));
    put(p, "script", "#!/no/such/interpreter\n");
    assert_int_equal(chmod(script, 0700), 0);
    assert_int_equal(rec_launch_open(&l, broken, &err), 0);
    assert_int_equal(rec_launch_go(&l, &err), 0);
    assert_int_equal(rec_launch_result(&l, script, &err), ST_EFAIL);
    assert_non_null(strstr(err.text, "No such file or directory"));
    rec_launch_close(&l);
    assert_true(wait(NULL) > 0);
}

/* ------------------------------------------------------------------ processes that end */

static int finished(void *ctx, struct st_error *err)
{
    (void)err;
    ++*(int *)ctx;
    return 7;
}

static void the_last_process_ends(void **state)
{
    struct place *p = *state;
    pid_t pids[3];
    struct st_target target = {.kind = ST_TARGET_PIDS, .pids = pids, .npids = 3};
    struct rec_alive alive = {0};
    struct st_error err = {0};
    int ended = 0;

    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (!pids[i]) {
            pause();
            _exit(0);
        }
    }
    pids[2] = 999999999; /* gone before we looked */
    assert_int_equal(rec_alive_open(&alive, p->loop, &target, 0, finished, &ended, &err), 0);
    assert_int_equal(rec_loop_turn(p->loop, &err), 0);
    kill(pids[0], SIGKILL);
    assert_int_equal(rec_loop_turn(p->loop, &err), 0);
    assert_int_equal(ended, 0);
    kill(pids[1], SIGKILL);
    assert_int_equal(rec_loop_turn(p->loop, &err), 7);
    assert_int_equal(ended, 1);
    rec_alive_close(&alive);
    while (wait(NULL) > 0)
        ;
}

static void actions_are_read(void **state)
{
    static const struct {
        const char *text;

        enum rec_action_kind kind;

        int signal;

        pid_t pid;

        const char *command;
    } good[] = {
        {"snapshot", REC_ACTION_SNAPSHOT, 0, 0, NULL},
        {"signal:10:4312", REC_ACTION_SIGNAL, SIGUSR1, 4312, NULL},
        {"signal:USR1:4312", REC_ACTION_SIGNAL, SIGUSR1, 4312, NULL},
        {"signal:sigstop:1", REC_ACTION_SIGNAL, SIGSTOP, 1, NULL},
        {"shell:echo a:b", REC_ACTION_SHELL, 0, 0, "echo a:b"},
        {"shell:snapshot", REC_ACTION_SHELL, 0, 0, "snapshot"},
        {"echo snapshot", REC_ACTION_SHELL, 0, 0, "echo snapshot"},
    };
    static const char *const bad[] = {"signal:",
                                      "signal:10",
                                      "signal:10:",
                                      "signal::4312",
                                      "signal:0:4312",
                                      "signal:99:1",
                                      "signal:USR9:12",
                                      "signal:10:0",
                                      "signal:10:-1",
                                      "signal:10:12x",
                                      "",
                                      "shell:",
                                      "shell:  ",
                                      "signal:10:99999999999"};
    struct rec_action a;

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(rec_action_parse("--then", good[i].text, &a, NULL), 0);
        assert_int_equal(a.kind, good[i].kind);
        assert_int_equal(a.signal, good[i].signal);
        assert_int_equal(a.pid, good[i].pid);
        if (good[i].command)
            assert_string_equal(a.command, good[i].command);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct st_error err = {0};

        assert_int_equal(rec_action_parse("--then", bad[i], &a, &err), ST_EUSAGE);
        assert_non_null(strstr(err.text, "--then"));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actions_are_read),
        cmocka_unit_test_setup_teardown(decoding_steps_back_beside_a_recording_that_goes_on, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(another_file_of_that_name_is_not_decoded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_decoder_that_fails_leaves_the_snapshot, set_up, tear_down),
        cmocka_unit_test_setup_teardown(jobs_wait_for_each_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_decoder_that_hangs_is_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_command_waits_until_it_may_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_command_that_may_not_go_never_ran, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_command_that_cannot_be_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_last_process_ends, set_up, tear_down),
    };

    if (argc == 7 && !strcmp(argv[1], "decode") && !strcmp(argv[3], "-o"))
        return decoder_main(argv[2], argv[4]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
