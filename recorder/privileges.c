/* Capabilities: capabilities(7), capset(2). */
#include "recorder/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t effective(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};

    if (syscall(SYS_capget, &header, data))
        return 0;
    return data[0].effective | (uint64_t)data[1].effective << 32;
}

bool rec_has_capabilities(void)
{
    return effective() != 0;
}

bool rec_has_capability(int cap)
{
    return effective() >> cap & 1;
}

int rec_drop_privileges(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};

    /* Root's exec would give them back; this forbids it, with or without the bounding set, which only
     * CAP_SETPCAP can empty. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &header, none))
        return -1;
    if (!effective())
        return 0;
    errno = EPERM;
    return -1;
}
