/* forwarder: a TCP port forwarder that stalls on order and says when it did. Options: README.md of
 * tests/workloads. */
#include "log.h"
#include "options.h"
#include "relay.h"
#include "self_load.h"
#include "stall.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

static struct relay_config relay_config;
static struct self_load self_load = {.listener = -1, .pid = -1};

/* readable for good once the workers are to end */
static int stop_fd = -1;
static int signal_fd = -1;

static void stop_workers(void)
{
    uint64_t one = 1;

    atomic_store(&relay_config.stop, true);
    if (write(stop_fd, &one, sizeof(one)) < 0)
        perror("forwarder: eventfd");
}

/* Returns true when the forwarder is to end now. */
static bool handle_signal(uint32_t signal)
{
    switch (signal) {
    case SIGUSR1:
        stalls_start();
        log_line("start stalls");
        return false;
    case SIGCHLD:
        return self_load_ended(&self_load);
    default:
        /* The load is told to end first: it then checks what has arrived, and its end is ours. */
        return !self_load_stop(&self_load);
    }
}

/* The first worker runs in the main thread and takes the signals. */
static bool on_signal(struct worker *worker)
{
    struct signalfd_siginfo info;

    (void)worker;
    if (read(signal_fd, &info, sizeof(info)) != sizeof(info) || !handle_signal(info.ssi_signo))
        return false;
    stop_workers();
    return true;
}

static bool on_stop(struct worker *worker)
{
    return atomic_load(&worker->config->stop);
}

static void *run_worker(void *arg)
{
    event_loop(arg);
    return NULL;
}

/* Starts the workers behind the first; *started says how many there are. Returns 0 or -1 after a message. */
static int start_workers(struct worker *workers, pthread_t *threads, unsigned count, unsigned *started)
{
    char name[32];

    for (unsigned i = 1; i < count; i++) {
        if (worker_open(&workers[i], &relay_config, i, stop_fd, on_stop)) {
            worker_close(&workers[i]);
            return -1;
        }
        int error = pthread_create(&threads[i], NULL, run_worker, &workers[i]);
        if (error) {
            fprintf(stderr, "forwarder: cannot start worker %u: %s\n", i, strerror(error));
            worker_close(&workers[i]);
            return -1;
        }
        snprintf(name, sizeof(name), "worker-%u", i);
        pthread_setname_np(threads[i], name);
        *started = i + 1;
    }
    return 0;
}

static void join_workers(struct worker *workers, pthread_t *threads, unsigned started)
{
    stop_workers();
    for (unsigned i = 1; i < started; i++) {
        pthread_join(threads[i], NULL);
        worker_close(&workers[i]);
    }
}

static int run_workers(const struct options *options)
{
    static struct worker workers[WORKERS_MAX];
    pthread_t threads[WORKERS_MAX];
    unsigned started = 1;
    int result = worker_open(&workers[0], &relay_config, 0, signal_fd, on_signal);

    if (!result)
        result = start_workers(workers, threads, options->threads, &started);
    if (!result) {
        log_line("ready pid=%d", getpid());
        event_loop(&workers[0]);
    }
    join_workers(workers, threads, started);
    worker_close(&workers[0]);
    return result;
}

/* Signals come through a descriptor of the first worker's epoll set; no other thread sees them. */
static int open_control(void)
{
    sigset_t signals;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    stop_fd = eventfd(0, EFD_CLOEXEC);
    if (signal_fd >= 0 && stop_fd >= 0)
        return 0;
    fprintf(stderr, "forwarder: cannot watch for signals: %s\n", strerror(errno));
    return -1;
}

/* Listens, and writes the address with the port it got to the log. */
static int open_listener(const struct options *options)
{
    struct sockaddr_in got;
    socklen_t length = sizeof(got);
    char address[INET_ADDRSTRLEN], target[INET_ADDRSTRLEN];

    relay_config.listener = listen_on(&options->listen);
    if (relay_config.listener < 0 || getsockname(relay_config.listener, (struct sockaddr *)&got, &length)) {
        inet_ntop(AF_INET, &options->listen.sin_addr, address, sizeof(address));
        fprintf(stderr, "forwarder: cannot listen on %s:%u: %s\n", address, ntohs(options->listen.sin_port),
                strerror(errno));
        return -1;
    }
    inet_ntop(AF_INET, &got.sin_addr, address, sizeof(address));
    inet_ntop(AF_INET, &relay_config.target.sin_addr, target, sizeof(target));
    log_line("listen=%s:%u target=%s:%u threads=%u", address, ntohs(got.sin_port), target,
             ntohs(relay_config.target.sin_port), options->threads);
    return self_load.listener < 0 ? 0 : self_load_start(&self_load, &got, options);
}

static int run(const struct options *options)
{
    relay_config.target = options->target;
    relay_config.buffer = options->buffer;
    if (options->self_load && self_load_listen(&self_load, &relay_config.target))
        return -1;
    if (open_control() || stalls_prepare(&options->stalls) || open_listener(options))
        return -1;
    if (!options->wait_usr1)
        stalls_start();
    return run_workers(options);
}

static void close_all(void)
{
    stalls_finish();
    if (relay_config.listener >= 0)
        close(relay_config.listener);
    if (signal_fd >= 0)
        close(signal_fd);
    if (stop_fd >= 0)
        close(stop_fd);
}

int main(int argc, char **argv)
{
    struct options options;
    int status = options_read(&options, argc, argv);

    if (status != OPTIONS_RUN)
        return status;
    relay_config.listener = -1;
    if (log_open(options.log, options.also_stderr))
        return 1;
    int result = run(&options);
    int load = self_load_finish(&self_load);
    close_all();
    log_line("end stalls=%" PRIu64 " sessions=%" PRIu64 " bytes=%" PRIu64 " load=%s", stalls_logged(),
             sessions_opened(), bytes_forwarded(),
             !options.self_load ? "none"
             : load             ? "bad"
                                : "good");
    return result || load ? 1 : 0;
}
