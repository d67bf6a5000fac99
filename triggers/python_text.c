/* What a Python frame is called, and its line. */
#include "triggers/memory.h"
#include "triggers/python.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    OBJECT_TYPE = 8,
    BYTES_SIZE = 16, /* PyVarObject.ob_size */
    BYTES_TEXT = 32, /* PyBytesObject.ob_sval */
    STRING_LENGTH = 16,
    STRING_STATE = 32,
    COMPACT = 1 << 5,
    ASCII = 1 << 6,
    STRING_UTF8 = 16, /* bytes that a string which is not ASCII has more before its text */
    LONGEST_NAME = 1024,
    LONGEST_LINES = 1 << 16,
};

static bool read_word(int memory, uint64_t at, uint64_t *value)
{
    return trg_memory_read(memory, at, value, sizeof(*value));
}

/* One character as UTF-8; returns its bytes. */
static size_t put_utf8(char *to, uint32_t c)
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = n; i-- > 1; c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(n > 1 ? lead[n] | c : c);
    return n;
}

/* A compact string (PEP 393: `kind` bytes a character), as UTF-8; a long one is cut. */
static bool read_string(int memory, const struct trg_python *python, uint64_t at, char *text, size_t size)
{
    unsigned char raw[LONGEST_NAME * 4];
    uint64_t length, before = python->code.ascii;
    uint32_t state, kind;
    size_t n = 0;

    if (!read_word(memory, at + STRING_LENGTH, &length) ||
        !trg_memory_read(memory, at + STRING_STATE, &state, sizeof(state)))
        return false;
    kind = state >> 2 & 7;
    if ((kind != 1 && kind != 2 && kind != 4) || !(state & COMPACT))
        return false;
    if (!(state & ASCII))
        before += python->code.ascii == 48 ? STRING_UTF8 + 8 : STRING_UTF8; /* wstr_length, until 3.11 */
    if (length > LONGEST_NAME)
        length = LONGEST_NAME;
    if (!trg_memory_read(memory, at + before, raw, length * kind))
        return false;
    for (uint64_t i = 0; i < length && n + 5 < size; i++) {
        uint32_t c = 0;

        memcpy(&c, raw + i * kind, kind);
        n += put_utf8(text + n, c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0xfffd : c);
    }
    text[n] = '\0';
    return true;
}

/* A number of the table of lines, six bits a byte, the lowest first. */
static uint32_t read_number(const unsigned char *table, size_t size, size_t *at)
{
    uint32_t value = 0, shift = 0;

    while (*at < size && shift < 30) {
        unsigned char byte = table[(*at)++];

        value |= (uint32_t)(byte & 63) << shift;
        shift += 6;
        if (!(byte & 64))
            break;
    }
    return value;
}

static int32_t read_signed(const unsigned char *table, size_t size, size_t *at)
{
    uint32_t value = read_number(table, size, at);

    return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

/* The line of the instruction with that index (in code units of two bytes); 0: it has none. */
static int64_t line_of(const unsigned char *table, size_t size, int64_t line, uint64_t index)
{
    uint64_t unit = 0;

    for (size_t at = 0; at < size;) {
        unsigned char head = table[at++];
        unsigned code = head >> 3 & 15;

        unit += (head & 7) + 1;
        if (code == 14 || code == 13)
            line += read_signed(table, size, &at);
        else if (code >= 10 && code <= 12)
            line += code - 10;
        if (unit > index)
            return code == 15 ? 0 : line;
        while (at < size && !(table[at] & 0x80)) /* columns */
            at++;
    }
    return 0;
}

static int64_t read_line(int memory, const struct trg_python *python, const struct trg_python_frame *frame)
{
    static unsigned char table[LONGEST_LINES];
    uint64_t lines, size, code = frame->code + python->code.bytes;
    int32_t first;

    if (frame->instruction < code || !read_word(memory, frame->code + python->code.lines, &lines) ||
        !read_word(memory, lines + BYTES_SIZE, &size) ||
        !trg_memory_read(memory, frame->code + python->code.first_line, &first, sizeof(first)))
        return 0;
    if (size > sizeof(table))
        size = sizeof(table);
    if (!trg_memory_read(memory, lines + BYTES_TEXT, table, size))
        return 0;
    return line_of(table, size, first, (frame->instruction - code) / 2);
}

/* What is too long loses the end of its function and the beginning of its path, never a digit of its line. */
static void put_text(char *text, size_t size, const char *name, const char *file, int64_t line)
{
    char where[32] = "";
    size_t functions = size / 3, n = strlen(name), m = strlen(file), room;

    if (line > 0)
        snprintf(where, sizeof(where), ":%" PRId64, line);
    if (n > functions)
        n = functions;
    room = size - n - strlen(where) - sizeof("... (...)");
    snprintf(text, size, "%.*s%s (%s%s%s)", (int)n, name, name[n] ? "..." : "", m > room ? "..." : "",
             m > room ? file + m - room : file, where);
}

bool trg_python_text(int memory, const struct trg_python *python, const struct trg_python_frame *frame,
                     char *text, size_t size)
{
    char name[LONGEST_NAME], file[LONGEST_NAME];
    uint64_t type, at;
    int64_t line;

    if (!read_word(memory, frame->code + OBJECT_TYPE, &type) || type != python->code_type ||
        !read_word(memory, frame->code + python->code.name, &at) ||
        !read_string(memory, python, at, name, sizeof(name)) ||
        !read_word(memory, frame->code + python->code.filename, &at) ||
        !read_string(memory, python, at, file, sizeof(file)))
        return false;
    line = read_line(memory, python, frame);
    put_text(text, size, name, file, line);
    return true;
}
