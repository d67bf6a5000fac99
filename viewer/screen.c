/* The grid of cells. */
#include "viewer/screen.h"
#include "base/safetext.h"
#include "viewer/format.h"

#include <stdlib.h>
#include <string.h>

int vw_screen_size(struct vw_screen *s, int width, int height, struct st_error *err)
{
    struct vw_cell *cells;

    width = width < 1 ? 1 : width;
    height = height < 1 ? 1 : height;
    cells = calloc((size_t)width * (size_t)height, sizeof(*cells));
    if (!cells)
        return st_nomem(err, "the screen");
    free(s->cells);
    s->cells = cells;
    s->width = width;
    s->height = height;
    vw_screen_clear(s);
    return 0;
}

void vw_screen_clear(struct vw_screen *s)
{
    for (int i = 0; i < s->width * s->height; i++)
        s->cells[i] = (struct vw_cell){' ', VW_STYLE_PLAIN, VW_FILL_NONE, 0};
}

void vw_screen_free(struct vw_screen *s)
{
    free(s->cells);
    s->cells = NULL;
}

void vw_put(struct vw_screen *s, int x, int y, uint32_t cp, char fallback, enum vw_style style)
{
    if (x < 0 || y < 0 || x >= s->width || y >= s->height)
        return;
    s->cells[y * s->width + x] =
        (struct vw_cell){s->ascii ? (uint32_t)(unsigned char)fallback : cp, (uint8_t)style, VW_FILL_NONE, 0};
}

void vw_fill(struct vw_screen *s, int x, int y, enum vw_fill fill, int eighths)
{
    if (x < 0 || y < 0 || x >= s->width || y >= s->height)
        return;
    s->cells[y * s->width + x].fill = (uint8_t)fill;
    s->cells[y * s->width + x].eighths = (uint8_t)(eighths < 0 ? 0 : eighths > 7 ? 7 : eighths);
}

int vw_put_text(struct vw_screen *s, int x, int y, int width, enum vw_style style, const char *text)
{
    size_t left = strlen(text);
    int used = 0;

    while (left) {
        uint32_t cp = '?';
        size_t n = st_utf8_decode(text, left, &cp);
        int w = n ? vw_char_width(cp) : 1;

        text += n ? n : 1;
        left -= n ? n : 1;
        if (w <= 0)
            continue;
        if (used + w > width || x + used + w > s->width)
            break;
        if (s->ascii)
            vw_put(s, x + used, y, cp, cp < 128 ? (char)cp : '?', style);
        else
            vw_put(s, x + used, y, cp, '?', style);
        if (w == 2)
            vw_put(s, x + used + 1, y, s->ascii ? '?' : 0, '?', style);
        used += w;
    }
    return used;
}

static int columns_of(const char **text, size_t *left)
{
    uint32_t cp = '?';
    size_t n = st_utf8_decode(*text, *left, &cp);
    int w = n ? vw_char_width(cp) : 1;

    *text += n ? n : 1;
    *left -= n ? n : 1;
    return w;
}

int vw_put_cut(struct vw_screen *s, int x, int y, int width, enum vw_style style, const char *text)
{
    int head = (width - 2 + 1) / 2, tail = width - 2 - head, skip = vw_text_width(text) - tail;
    int used = vw_put_text(s, x, y, head, style, text);
    size_t left = strlen(text);
    const char *at = text;

    used += vw_put_text(s, x + used, y, 2, style, "..");
    while (left && skip > 0)
        skip -= columns_of(&at, &left);
    return used + vw_put_text(s, x + used, y, width - used, style, at);
}

static void print_cell(FILE *out, uint32_t cp)
{
    if (cp == 0)
        return;
    if (cp < 0x80) {
        fputc((int)cp, out);
    } else if (cp < 0x800) {
        fputc((int)(0xc0 | cp >> 6), out);
        fputc((int)(0x80 | (cp & 0x3f)), out);
    } else {
        if (cp < 0x10000) {
            fputc((int)(0xe0 | cp >> 12), out);
        } else {
            fputc((int)(0xf0 | cp >> 18), out);
            fputc((int)(0x80 | (cp >> 12 & 0x3f)), out);
        }
        fputc((int)(0x80 | (cp >> 6 & 0x3f)), out);
        fputc((int)(0x80 | (cp & 0x3f)), out);
    }
}

void vw_screen_print(const struct vw_screen *s, FILE *out)
{
    for (int y = 0; y < s->height; y++) {
        const struct vw_cell *row = &s->cells[y * s->width];
        int width = s->width;

        while (width && row[width - 1].cp == ' ')
            width--;
        for (int x = 0; x < width; x++)
            print_cell(out, row[x].cp);
        fputc('\n', out);
    }
}
