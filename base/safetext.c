/* Escapes what must not reach a terminal. */
#include "base/safetext.h"

#include <stdio.h>
#include <string.h>

size_t st_utf8_decode(const char *s, size_t n, uint32_t *cp)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *u = (const unsigned char *)s;
    size_t len;
    uint32_t c;

    if (n == 0)
        return 0;
    if (u[0] < 0x80) {
        *cp = u[0];
        return 1;
    }
    len = u[0] >= 0xf0 ? 4 : u[0] >= 0xe0 ? 3 : u[0] >= 0xc0 ? 2 : 0;
    if (len == 0 || len > n || u[0] > 0xf4)
        return 0;
    c = u[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (u[i] & 0x3f);
    }
    if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *cp = c;
    return len;
}

bool st_cp_printable(uint32_t cp)
{
    if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0))
        return false;
    if (cp == 0x2028 || cp == 0x2029 || (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069))
        return false;
    if ((cp & 0xfffe) == 0xfffe || (cp >= 0xfdd0 && cp <= 0xfdef)) /* no characters, nor allowed in XML */
        return false;
    return cp != 0x200e && cp != 0x200f && cp != 0x61c && cp != 0xfeff;
}

static size_t escape(char *dst, size_t size, const char *src, bool keep_newline)
{
    size_t left = strlen(src);
    size_t out = 0;

    while (left) {
        uint32_t cp = 0;
        size_t len = st_utf8_decode(src, left, &cp);
        bool plain = len && (st_cp_printable(cp) || (keep_newline && cp == '\n'));
        size_t need = plain ? len : 4;

        if (out + need >= size)
            break;
        if (plain) {
            memcpy(dst + out, src, len);
        } else {
            char code[5];

            len = 1;
            snprintf(code, sizeof(code), "\\x%02x", (unsigned char)*src);
            memcpy(dst + out, code, 4);
        }
        out += need;
        src += len;
        left -= len;
    }
    dst[out] = '\0';
    return out;
}

size_t st_safe_text(char *dst, size_t size, const char *src)
{
    return escape(dst, size, src, false);
}

size_t st_safe_lines(char *dst, size_t size, const char *src)
{
    return escape(dst, size, src, true);
}
