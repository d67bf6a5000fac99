/* Capabilities: capabilities(7), capget(2). */
#include "recorder/perf/privileges.h"

#include <linux/capability.h>
#include <stdint.h>
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
