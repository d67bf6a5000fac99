/* Text that may come from other people's files, made fit for a terminal. */
#ifndef ST_BASE_SAFETEXT_H
#define ST_BASE_SAFETEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes one UTF-8 sequence of at most n bytes at s into *cp. Returns its length, or 0 if the bytes are no
 * valid sequence (overlong, surrogate, cut, above U+10FFFF: RFC 3629). */
size_t st_utf8_decode(const char *s, size_t n, uint32_t *cp);

/* Whether a code point may be shown as it is: not a control (C0, DEL, C1), not a line or paragraph separator,
 * not a bidirectional override or isolate, which can make a name look like another, and not one of those that
 * Unicode never makes characters (U+FFFE, U+FFFF and the like). */
bool st_cp_printable(uint32_t cp);

/* Copies the string src to dst (at most size bytes with the final NUL, cut between characters); what is not
 * printable UTF-8 becomes \xNN a byte, a newline or tab too. Returns the length of what was written. size
 * must not be 0. */
size_t st_safe_text(char *dst, size_t size, const char *src);

/* As st_safe_text, but newlines stay: for messages of several lines. */
size_t st_safe_lines(char *dst, size_t size, const char *src);

#endif
