/* libFuzzer: any bytes from a client of --prometheus PORT. */
#include "fuzz.h"

#include "base/log.h"
#include "base/loop.h"
#include "recorder/arm/metrics.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

static struct rec_metrics *metrics;

static struct sockaddr_in address = {.sin_family = AF_INET};

static int loop;

/* There are no triggers here: what they measured. */
int __wrap_trg_print_openmetrics(struct trg_set *set, const struct trg_traps *traps, FILE *to,
                                 struct st_error *err);
int __wrap_trg_print_openmetrics(struct trg_set *set, const struct trg_traps *traps, FILE *to,
                                 struct st_error *err)
{
    (void)set;
    (void)err;
    fprintf(to, "stalltrap_traps_total %u\n# EOF\n", traps ? traps->fired : 0);
    return 0;
}

/* Of a port that is free now. */
static bool listens(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof(address);
    char port[16];

    address.sin_port = 0;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fuzz_must(!bind(fd, (struct sockaddr *)&address, size) &&
              !getsockname(fd, (struct sockaddr *)&address, &size));
    close(fd);
    snprintf(port, sizeof(port), "%u", ntohs(address.sin_port));
    return !rec_metrics_open(port, NULL, NULL, loop, REC_METRICS_EVERY, &metrics, NULL);
}

static void end(void)
{
    rec_metrics_close(metrics);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    int tries = 0;

    (void)argc;
    (void)argv;
    st_log_level(ST_LOG_QUIET);
    loop = rec_loop_open(NULL);
    while (!listens()) /* another took the port in between */
        fuzz_must(++tries < 100);
    atexit(end);
    return 0;
}

static void turn(void)
{
    struct pollfd ready = {.fd = loop, .events = POLLIN};

    for (int i = 0; i < 50 && poll(&ready, 1, 0) > 0; i++)
        fuzz_must(!rec_loop_turn(loop, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct linger at_once = {1, 0};
    size_t cut = size ? size * data[0] / 256 : 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char answer[4096];
    ssize_t n;

    fuzz_must(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
        close(fd);
        return 0;
    }
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    turn();
    send(fd, data, cut, MSG_NOSIGNAL | MSG_DONTWAIT);
    turn();
    send(fd, data + cut, size - cut, MSG_NOSIGNAL | MSG_DONTWAIT);
    turn();
    n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
    fuzz_must(n < 9 || !memcmp(answer, "HTTP/1.", 7));
    close(fd);
    turn();
    return 0;
}
