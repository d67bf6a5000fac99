/* What the worker gives up. Each layer holds alone; where the kernel or a container refuses one, the others
 * stay. */
#include "decoder/cmd/given.h"
#include "decoder/cmd/worker.h"

#include "base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

/* The sanitizers' own work needs what would be given up, and terabytes of addresses. */
#ifdef ST_SANITIZED
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* What decoding needs in any case, and what it sets aside for the graph of the code, of which it takes what
 * the code needs: for all, and for each thread. */
#define BASE       (256 * MIB)
#define RESERVED   (1024 * MIB)
#define OF_THREADS (640 * MIB)

/* ---- limits ---- */

static void set_limit(__rlimit_resource_t what, uint64_t most)
{
    struct rlimit now;

    if (getrlimit(what, &now))
        return;
    now.rlim_max = now.rlim_max < most ? now.rlim_max : most;
    now.rlim_cur = now.rlim_max;
    setrlimit(what, &now);
}

uint64_t dec_memory(const struct decode_options *options)
{
    struct sysinfo machine;
    uint64_t half;

    if (options->memory)
        return options->memory + BASE;
    half = sysinfo(&machine) ? 0 : (uint64_t)machine.totalram * machine.mem_unit / 2;
    return half > 1024 * MIB ? half : 1024 * MIB;
}

static uint64_t input_bytes(const struct decode_options *options)
{
    struct stat st;
    uint64_t bytes = 0;

    if (options->input && !dec_given_stat_input(options, &st))
        bytes = S_ISDIR(st.st_mode) ? 1024 * MIB : (uint64_t)st.st_size;
    for (size_t i = 0; i < options->raw.traces.n; i++)
        if (!stat(options->raw.traces.at[i], &st))
            bytes += (uint64_t)st.st_size;
    return bytes;
}

static void be_first_to_go(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (write(fd, "1000", 4) < 0) {
        close(fd);
        return; /* it is as likely to go as others, then */
    }
    close(fd);
}

/* A user's own limit is of one file: what has no room in memory is another, for a while. */
uint64_t dec_disk(const struct decode_options *options)
{
    enum { FILES = 4 };
    uint64_t most = 65536 * MIB + 4096 * input_bytes(options);
    struct rlimit now;

    if (!getrlimit(RLIMIT_FSIZE, &now) && now.rlim_cur < most / FILES)
        most = now.rlim_cur * FILES;
    return most;
}

/* More than anything decodes to: a bound for what goes round for ever, or writes without end. */
void dec_limit(const struct decode_options *options, uint64_t disk)
{
    uint64_t bytes = input_bytes(options);
    uint64_t data = dec_memory(options) + RESERVED + dec_raw_threads(&options->raw) * OF_THREADS;

    set_limit(RLIMIT_CORE, 0);
    set_limit(RLIMIT_CPU, 3600 + bytes / 50000);
    set_limit(RLIMIT_FSIZE, disk);
    set_limit(RLIMIT_NOFILE, 65536);
    if (!SANITIZED) {
        set_limit(RLIMIT_DATA, data);
        set_limit(RLIMIT_AS, data + 2 * bytes + 65536 * MIB);
    }
    be_first_to_go();
}

/* ---- what can be given up ---- */

/* An empty folder becomes all there is of files. */
static void leave_files(void)
{
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=555") ||
        chroot("/tmp") || chdir("/"))
        return; /* there is Landlock, and the filter of system calls */
}

static void leave_name_spaces(void)
{
    static const int spaces[] = {CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP};

    if (geteuid() && unshare(CLONE_NEWUSER))
        return;
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
        if (unshare(spaces[i]))
            continue; /* one less */
    leave_files();
}

struct user {
    uid_t uid;

    gid_t gid;
};

/* Who a worker of root's becomes. */
static struct user find_user(void)
{
    static const char *const names[] = {"stalltrap", "nobody"};

    for (int i = 0; i < 2; i++) {
        const struct passwd *entry = getpwnam(names[i]);

        if (entry && entry->pw_uid && entry->pw_gid)
            return (struct user){entry->pw_uid, entry->pw_gid};
    }
    return (struct user){65534, 65534};
}

static void become(struct user user)
{
    if (setgroups(0, NULL) || setresgid(user.gid, user.gid, user.gid) ||
        setresuid(user.uid, user.uid, user.uid))
        return; /* dec_enter_sandbox asks who it is */
}

static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};

    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    syscall(SYS_capset, &header, none);
}

static void empty_bounding_set(void)
{
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

int dec_enter_sandbox(struct st_error *err)
{
    struct user user = find_user();
    int rc;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (SANITIZED)
        return 0;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    empty_bounding_set();
    if (geteuid())
        drop_capabilities();
    leave_name_spaces();
    if (!geteuid())
        become(user);
    drop_capabilities();
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* becoming another user has undone it */
    st_confine_landlock();
    rc = dec_filter_calls(err);
    return rc && !geteuid() ? rc : 0;
}
