/* Reading the forwarder's command line. */
#include "options.h"

#include "relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char usage[] =
    "usage: forwarder --listen ADDRESS:PORT (--target ADDRESS:PORT | --self-load) [OPTION]...\n"
    "  --listen ADDRESS:PORT   IPv4 only; port 0: any free one, see the log\n"
    "  --target ADDRESS:PORT   where every connection is forwarded to\n"
    "  --threads N             workers, each with an epoll set of its own (default 1)\n"
    "  --buffer BYTES          read at once, at most (default 65536)\n"
    "  --log FILE              one line an event\n"
    "  --stderr                the same lines to stderr\n"
    "  --stall KIND:MS:EVERY   stall for MS ms, each EVERY ms; may be repeated\n"
    "                          KIND: fsync lock busy slowsend nagle idle forever\n"
    "  --stall-count N         so many of each --stall in all (default: no end)\n"
    "  --wait-usr1             no stalls before SIGUSR1\n"
    "  --dir DIR               where the big file of the fsync stall is (default /var/tmp)\n"
    "  --fsync-via auto|disk|fuse\n"
    "  --self-load             start the program loadgen as source and target of data\n"
    "  --load-connections N    (default 4)\n"
    "  --load-rate BYTES       a second, over all connections; 0: no limit (default 4000000)\n"
    "  --load-seconds S        end after S seconds (default: on SIGTERM)\n";

enum {
    OPT_LISTEN = 256,
    OPT_TARGET,
    OPT_THREADS,
    OPT_BUFFER,
    OPT_LOG,
    OPT_STDERR,
    OPT_STALL,
    OPT_STALL_COUNT,
    OPT_WAIT_USR1,
    OPT_DIR,
    OPT_FSYNC_VIA,
    OPT_SELF_LOAD,
    OPT_LOAD_CONNECTIONS,
    OPT_LOAD_RATE,
    OPT_LOAD_SECONDS,
    OPT_HELP,
};

static const struct option long_options[] = {
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"target", required_argument, NULL, OPT_TARGET},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"buffer", required_argument, NULL, OPT_BUFFER},
    {"log", required_argument, NULL, OPT_LOG},
    {"stderr", no_argument, NULL, OPT_STDERR},
    {"stall", required_argument, NULL, OPT_STALL},
    {"stall-count", required_argument, NULL, OPT_STALL_COUNT},
    {"wait-usr1", no_argument, NULL, OPT_WAIT_USR1},
    {"dir", required_argument, NULL, OPT_DIR},
    {"fsync-via", required_argument, NULL, OPT_FSYNC_VIA},
    {"self-load", no_argument, NULL, OPT_SELF_LOAD},
    {"load-connections", required_argument, NULL, OPT_LOAD_CONNECTIONS},
    {"load-rate", required_argument, NULL, OPT_LOAD_RATE},
    {"load-seconds", required_argument, NULL, OPT_LOAD_SECONDS},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static int read_number(const char *name, const char *text, uint64_t minimum, uint64_t maximum,
                       uint64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && !errno && *value >= minimum && *value <= maximum)
        return 0;
    fprintf(stderr, "forwarder: --%s %s: must be a number from %llu to %llu\n", name, text,
            (unsigned long long)minimum, (unsigned long long)maximum);
    return -1;
}

static int read_unsigned(const char *name, const char *text, unsigned minimum, unsigned maximum,
                         unsigned *value)
{
    uint64_t number;

    if (read_number(name, text, minimum, maximum, &number))
        return -1;
    *value = (unsigned)number;
    return 0;
}

static int read_address(const char *name, const char *text, struct sockaddr_in *address)
{
    const char *colon = strrchr(text, ':');
    char host[INET_ADDRSTRLEN] = "";
    char *end = NULL;

    if (colon && (size_t)(colon - text) < sizeof(host))
        memcpy(host, text, (size_t)(colon - text));
    unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
    address->sin_family = AF_INET;
    address->sin_port = htons((uint16_t)port);
    if (inet_pton(AF_INET, host, &address->sin_addr) == 1 && end != colon + 1 && !*end && port <= 65535)
        return 0;
    fprintf(stderr, "forwarder: --%s %s: must be IPV4-ADDRESS:PORT\n", name, text);
    return -1;
}

static int read_fsync_via(const char *text, enum fsync_via *via)
{
    static const char *const words[] = {
        [FSYNC_VIA_AUTO] = "auto", [FSYNC_VIA_DISK] = "disk", [FSYNC_VIA_FUSE] = "fuse"};

    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (!strcmp(text, words[i])) {
            *via = (enum fsync_via)i;
            return 0;
        }
    }
    fprintf(stderr, "forwarder: --fsync-via %s: must be auto, disk or fuse\n", text);
    return -1;
}

static int read_option(struct options *options, int option, const char *text)
{
    switch (option) {
    case OPT_LISTEN:
        return read_address("listen", text, &options->listen);
    case OPT_TARGET:
        return read_address("target", text, &options->target);
    case OPT_THREADS:
        return read_unsigned("threads", text, 1, WORKERS_MAX, &options->threads);
    case OPT_BUFFER:
        return read_unsigned("buffer", text, 1, CHUNK_BYTES, &options->buffer);
    case OPT_LOG:
        options->log = text;
        return 0;
    case OPT_STDERR:
        options->also_stderr = true;
        return 0;
    case OPT_STALL:
        return stalls_add(text);
    case OPT_STALL_COUNT:
        return read_number("stall-count", text, 1, 1000000, &options->stalls.count);
    case OPT_WAIT_USR1:
        options->wait_usr1 = true;
        return 0;
    case OPT_DIR:
        options->stalls.dir = text;
        return 0;
    case OPT_FSYNC_VIA:
        return read_fsync_via(text, &options->stalls.fsync_via);
    case OPT_SELF_LOAD:
        options->self_load = true;
        return 0;
    case OPT_LOAD_CONNECTIONS:
        return read_unsigned("load-connections", text, 1, 64, &options->load_connections);
    case OPT_LOAD_RATE:
        return read_number("load-rate", text, 0, UINT64_C(1) << 40, &options->load_rate);
    case OPT_LOAD_SECONDS:
        return read_unsigned("load-seconds", text, 0, 86400, &options->load_seconds);
    default:
        return -1;
    }
}

static int check_options(const struct options *options, int argc)
{
    if (optind < argc)
        fprintf(stderr, "forwarder: a word too many; see --help\n");
    else if (!options->listen.sin_family)
        fprintf(stderr, "forwarder: --listen is missing; see --help\n");
    else if (options->self_load == !!options->target.sin_family)
        fprintf(stderr, "forwarder: give either --target or --self-load; see --help\n");
    else
        return OPTIONS_RUN;
    return 2;
}

int options_read(struct options *options, int argc, char **argv)
{
    int option;

    *options = (struct options){.threads = 1,
                                .buffer = CHUNK_BYTES,
                                .stalls = {.dir = "/var/tmp"},
                                .load_connections = 4,
                                .load_rate = 4000000};
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (option == OPT_HELP) {
            fputs(usage, stdout);
            return 0;
        }
        if (read_option(options, option, optarg))
            return 2;
    }
    return check_options(options, argc);
}

int listen_on(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0)
        return -1;
    if (!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) &&
        !bind(fd, (const struct sockaddr *)address, sizeof(*address)) && !listen(fd, 128))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}
