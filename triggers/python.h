/* The Python frames of a thread, read out of the interpreter's memory from outside: CPython 3.11 to 3.14. The
 * program runs nothing and changes nothing for it.
 *
 * 3.13 and later begin _PyRuntime with a table of the offsets (Include/internal/pycore_debug_offsets.h);
 * those of 3.11 and 3.12 are of their headers (Include/internal/pycore_runtime.h, pycore_interp.h,
 * pycore_frame.h, Include/cpython/pystate.h, code.h). Lines: Objects/locations.md. */
#ifndef ST_TRIGGERS_PYTHON_H
#define ST_TRIGGERS_PYTHON_H

#include "triggers/bpf/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Offsets of a code object and of a string. */
struct trg_python_code {
    uint32_t filename, name, lines, first_line, bytes;

    uint32_t ascii; /* bytes before the text of an ASCII string */
};

struct trg_python {
    struct python_target target;

    struct trg_python_code code;

    uint32_t version; /* Py_Version: 0x030b02f0 is 3.11.2 */

    uint64_t code_type; /* address of PyCode_Type */
};

/* A frame: what BPF programs put into a record, a pair of words. */
struct trg_python_frame {
    uint64_t code; /* 0: it is the interpreter's own, between frames of the program */

    uint64_t instruction;
};

/* Looks whether a process runs a Python of a known layout. False: it does not (python->version is not 0 when
 * it runs another one), or its memory may not be read. */
bool trg_python_find(pid_t pid, struct trg_python *python);

/* The frames of a thread that does not run, innermost first, into frames[0..PYTHON_FRAMES). `native_id` is
 * the thread's id as the process itself sees it. Returns how many; 0: it has none, or its memory does not
 * look like that. Whether the thread ran meanwhile is the caller's to find out. */
size_t trg_python_frames(int memory, const struct trg_python *python, pid_t native_id,
                         struct trg_python_frame *frames);

/* "FUNCTION (FILE:LINE)" of a frame, as UTF-8 that is not escaped. False: it cannot be read, or is none. */
bool trg_python_text(int memory, const struct trg_python *python, const struct trg_python_frame *frame,
                     char *text, size_t size);

#endif
