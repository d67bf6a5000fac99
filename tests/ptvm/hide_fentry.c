/* Preloaded: a kernel whose functions' types are not known, so that no fentry program can be made for them.
 */
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <errno.h>

int libbpf_find_vmlinux_btf_id(const char *name, enum bpf_attach_type type)
{
    int (*real)(const char *, enum bpf_attach_type) = NULL;

    if (type == BPF_TRACE_FENTRY)
        return -ENOENT;
    *(void **)&real = dlsym(RTLD_NEXT, "libbpf_find_vmlinux_btf_id");
    return real ? real(name, type) : -ENOENT;
}
