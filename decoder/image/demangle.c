/* Readable names for mangled C++ and Rust symbols, through libiberty. */
#include "decoder/image/symbols.h"

#include <libiberty/demangle.h>

char *dec_demangle(const char *name)
{
    bool rust = name[0] == '_' && name[1] == 'R';
    bool itanium = name[0] == '_' && name[1] == 'Z';
    if (!rust && !itanium)
        return NULL;
    /* Rust's older scheme looks like C++ with a hash at the end, so it is tried first. */
    char *readable = rust_demangle(name, DMGL_NO_OPTS);
    return readable || rust ? readable : cplus_demangle_v3(name, DMGL_NO_OPTS);
}
