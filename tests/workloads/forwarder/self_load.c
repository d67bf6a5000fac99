/* Starting and ending loadgen. */
#include "self_load.h"

#include "log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

int self_load_listen(struct self_load *load, struct sockaddr_in *target)
{
    *target = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(*target);

    load->listener = listen_on(target);
    if (load->listener < 0 || getsockname(load->listener, (struct sockaddr *)target, &length)) {
        fprintf(stderr, "forwarder: cannot listen on 127.0.0.1 as the load's target: %s\n", strerror(errno));
        return -1;
    }
    return 0;
}

/* The path of loadgen in the folder of this program. */
static int find_loadgen(char *path, size_t room)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (length < 0)
        return -1;
    self[length] = '\0';
    return snprintf(path, room, "%s/loadgen", dirname(self)) < (int)room ? 0 : -1;
}

/* The child: gives it the target's socket as descriptor 3 and the log as its output. */
static void __attribute__((noreturn)) exec_loadgen(const char *path, int listener, char **argv)
{
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (log_fd() >= 0)
        dup2(log_fd(), STDOUT_FILENO);
    else
        dup2(STDERR_FILENO, STDOUT_FILENO);
    /* dup2 onto itself would keep the close-on-exec flag. */
    int spare = dup(listener);
    if (spare >= 0 && dup2(spare, 3) == 3) {
        if (spare != 3)
            close(spare);
        execv(path, argv);
    }
    fprintf(stderr, "forwarder: cannot start %s: %s\n", path, strerror(errno));
    _exit(127);
}

int self_load_start(struct self_load *load, const struct sockaddr_in *forwarder,
                    const struct options *options)
{
    char path[PATH_MAX], host[INET_ADDRSTRLEN], address[64], connections[16], rate[32], seconds[16];
    char *argv[] = {"loadgen",   "--listen-fd", "3",  "--connect", address, "--connections",
                    connections, "--rate",      rate, "--seconds", seconds, NULL};

    if (find_loadgen(path, sizeof(path))) {
        fprintf(stderr, "forwarder: cannot find its own folder: %s\n", strerror(errno));
        return -1;
    }
    inet_ntop(AF_INET, &forwarder->sin_addr, host, sizeof(host));
    snprintf(address, sizeof(address), "%s:%u", host, ntohs(forwarder->sin_port));
    snprintf(connections, sizeof(connections), "%u", options->load_connections);
    snprintf(rate, sizeof(rate), "%" PRIu64, options->load_rate);
    snprintf(seconds, sizeof(seconds), "%u", options->load_seconds);
    load->pid = fork();
    if (load->pid == 0)
        exec_loadgen(path, load->listener, argv);
    if (load->pid < 0) {
        fprintf(stderr, "forwarder: cannot start %s: %s\n", path, strerror(errno));
        return -1;
    }
    close(load->listener);
    load->listener = -1;
    return 0;
}

bool self_load_stop(struct self_load *load)
{
    if (load->pid <= 0 || load->ended)
        return false;
    kill(load->pid, SIGTERM);
    return true;
}

bool self_load_ended(struct self_load *load)
{
    if (load->pid > 0 && !load->ended)
        load->ended = waitpid(load->pid, &load->status, WNOHANG) == load->pid;
    return load->ended;
}

int self_load_finish(struct self_load *load)
{
    if (load->listener >= 0)
        close(load->listener);
    if (load->pid <= 0)
        return 0;
    if (!load->ended) {
        kill(load->pid, SIGKILL);
        while (waitpid(load->pid, &load->status, 0) < 0 && errno == EINTR)
            ;
    }
    if (WIFEXITED(load->status) && WEXITSTATUS(load->status) == 0)
        return 0;
    fprintf(stderr, "forwarder: the load did not come whole (loadgen's wait status is %#x)\n", load->status);
    return -1;
}
