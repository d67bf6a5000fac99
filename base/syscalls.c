/* System calls: libseccomp's tables, and those newer than it. */
#include "base/syscalls.h"

#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which libseccomp 2.5 does not know. From 403 on the numbers are the same on every architecture. */
static const struct {
    int number;

    bool compat; /* i386 has it too */

    const char *name;
} newer[] = {
    {335, false, "uretprobe"},        {336, false, "uprobe"},
    {451, true, "cachestat"},         {452, true, "fchmodat2"},
    {453, true, "map_shadow_stack"},  {454, true, "futex_wake"},
    {455, true, "futex_wait"},        {456, true, "futex_requeue"},
    {457, true, "statmount"},         {458, true, "listmount"},
    {459, true, "lsm_get_self_attr"}, {460, true, "lsm_set_self_attr"},
    {461, true, "lsm_list_modules"},  {462, true, "mseal"},
    {463, true, "setxattrat"},        {464, true, "getxattrat"},
    {465, true, "listxattrat"},       {466, true, "removexattrat"},
    {467, true, "open_tree_attr"},    {468, true, "file_getattr"},
    {469, true, "file_setattr"},      {470, true, "listns"},
};

enum { NEWER = sizeof(newer) / sizeof(newer[0]) };

static uint32_t arch_of(bool compat)
{
    return compat ? SCMP_ARCH_X86 : SCMP_ARCH_X86_64;
}

/* Its names of numbers below 0 are its own. */
static bool find_name(int number, bool compat, char *buf, size_t size)
{
    char *name = number >= 0 ? seccomp_syscall_resolve_num_arch(arch_of(compat), number) : NULL;
    const char *found = name;

    for (int i = 0; !found && i < NEWER; i++)
        if (newer[i].number == number && (newer[i].compat || !compat))
            found = newer[i].name;
    if (found)
        snprintf(buf, size, "%s", found);
    free(name);
    return found != NULL;
}

const char *st_syscall_name(int number, bool compat, char *buf, size_t size)
{
    if (!find_name(number, compat, buf, size))
        snprintf(buf, size, "%ssystem call %d", compat ? "32-bit " : "", number);
    return buf;
}

/* Of i386's calls of sockets libseccomp tells numbers of its own: they may be made by socketcall too. */
static int find_number(const char *name, bool compat)
{
    char other[64];

    for (int i = 0; i < ST_SYSCALLS; i++)
        if (find_name(i, compat, other, sizeof(other)) && !strcmp(other, name))
            return i;
    return -1;
}

int st_syscall_number(const char *name, bool compat)
{
    int number = seccomp_syscall_resolve_name_arch(arch_of(compat), name);

    return number >= 0 ? number : find_number(name, compat);
}

size_t st_syscall_names(const char **out, size_t room)
{
    static char names[ST_SYSCALLS][40];
    size_t n = 0;

    for (int i = 0; i < ST_SYSCALLS && n < room; i++)
        if (find_name(i, false, names[i], sizeof(names[i])))
            out[n++] = names[i];
    return n;
}
