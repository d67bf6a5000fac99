// A library, and a program, with all that the decoder reads of a code file: symbols, mangled names, a PLT,
// unwind tables, a probe, the table of a Go program.
#include "../workloads/probe_note.h"

#include <cstdio>
#include <stdexcept>

namespace seed
{
template <typename T> struct box {
    T value;

    explicit box(T v);
    T get() const;
};

template <typename T> box<T>::box(T v) : value(v)
{
    std::puts("box");
}

template <typename T> T box<T>::get() const
{
    if (!value)
        throw std::runtime_error("empty");
    return value;
}

template struct box<int>;
template struct box<const char *>;
} // namespace seed

asm(R"(
    .pushsection .gopclntab, "a", @progbits
go_table:
    .long 0xfffffff0
    .byte 0, 0, 1, 8
    .quad 2, 0, 0x1000, go_names - go_table, 0, 0, 0, go_functions - go_table
go_names:
    .asciz "main.main"
    .asciz "main.wait"
go_functions:
    .long 0, go_about - go_functions, 0x10, go_about + 8 - go_functions, 0x20
go_about:
    .long 0, 0, 0x10, 10
    .popsection
)");

static void resolved()
{
    probe(1);
    std::puts("resolved");
}

extern "C" {
void (*resolve())()
{
    return resolved;
}
__attribute__((ifunc("resolve"))) void chosen();
}

int main()
{
    try {
        chosen();
        return seed::box<int>(0).get();
    } catch (const std::exception &e) {
        std::puts(e.what());
    }
    return 0;
}
