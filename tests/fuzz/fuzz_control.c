/* libFuzzer: clients of the control socket that say anything, in pieces, and hang up at any moment. */
#include "fuzz.h"

#include "recorder/arm/control.h"
#include "recorder/arm/control_folder.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { CLIENTS = 20 /* more than it takes */ };

static char folder[] = "/tmp/stalltrap-fuzz.XXXXXX";

static struct rec_control *control;

static int loop, asked;

static struct sockaddr_un address = {.sun_family = AF_UNIX};

/* Not where `snap` looks. */
int __wrap_rec_control_own_folder(char *path, size_t size, struct st_error *err);
int __wrap_rec_control_own_folder(char *path, size_t size, struct st_error *err)
{
    (void)err;
    snprintf(path, size, "%s", folder);
    return 0;
}

static int on_ask(void *ctx, struct st_error *err)
{
    (void)ctx;
    (void)err;
    asked++;
    return 0;
}

static void end(void)
{
    rec_control_close(control);
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const pid_t targets[] = {1, 2};

    (void)argc;
    (void)argv;
    fuzz_must(mkdtemp(folder) != NULL);
    loop = rec_loop_open(NULL);
    fuzz_must(loop >= 0 && !rec_control_open(loop, targets, 2, on_ask, NULL, &control, NULL));
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/%d.sock", folder, getpid());
    atexit(end);
    return 0;
}

static void turn(void)
{
    struct pollfd ready = {.fd = loop, .events = POLLIN};

    while (poll(&ready, 1, 0) > 0)
        fuzz_must(!rec_loop_turn(loop, NULL));
}

static void dial(int *fd)
{
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    fuzz_must(*fd >= 0);
    if (connect(*fd, (struct sockaddr *)&address, sizeof(address))) {
        close(*fd);
        *fd = -1;
    }
}

/* An answer is whole lines, or there is none. */
static void hang_up(int *fd)
{
    char answer[4096];
    ssize_t n = recv(*fd, answer, sizeof(answer), 0);

    fuzz_must(n <= 0 || answer[n - 1] == '\n');
    close(*fd);
    *fd = -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int clients[CLIENTS];
    size_t at = 0;

    for (int i = 0; i < CLIENTS; i++)
        clients[i] = -1;
    while (at < size) {
        int *fd = &clients[data[at] % CLIENTS];
        size_t n = at + 1 < size ? data[at + 1] & 31 : 0;

        at += 2;
        n = at + n < size ? n : at < size ? size - at : 0;
        if (*fd < 0)
            dial(fd);
        else if (!n)
            hang_up(fd);
        if (*fd >= 0 && n)
            send(*fd, data + at, n, MSG_NOSIGNAL);
        at += n;
        turn();
        if (asked > 3) {
            rec_control_answer(control, rec_control_asked(control), "wrote x\n");
            asked = 0;
        }
    }
    rec_control_answer(control, rec_control_asked(control), "wrote x\n");
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i] >= 0)
            hang_up(&clients[i]);
    turn();
    return 0;
}
