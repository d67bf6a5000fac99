/* Keys in every mode: typing, marks, commands by name. */
#include "base/nearest.h"
#include "base/safetext.h"
#include "viewer/view.h"

#include <stdio.h>
#include <string.h>

static enum vw_request bound(uint32_t key)
{
    for (const struct vw_binding *b = vw_bindings; b->request != VW_REQ_NONE; b++)
        if (b->key == key)
            return b->request;
    return VW_REQ_NONE;
}

static int set_mark(struct vw_view *v, uint32_t key)
{
    v->mode = VW_MODE_TIMELINE;
    if (key < 'a' || key > 'z') {
        snprintf(v->message, sizeof(v->message), "marks are named a to z");
        return 0;
    }
    v->last_mark = (int)(key - 'a');
    v->marks[v->last_mark] = v->selected ? v->found.call.start : v->window.from;
    snprintf(v->message, sizeof(v->message), "mark %c set", (char)key);
    return 0;
}

static int go_mark(struct vw_view *v, uint32_t key)
{
    int64_t span = v->window.to - v->window.from;

    v->mode = VW_MODE_TIMELINE;
    if (key < 'a' || key > 'z' || v->marks[key - 'a'] < 0) {
        snprintf(v->message, sizeof(v->message), "no such mark");
        return 0;
    }
    vw_view_remember(v);
    v->last_mark = (int)(key - 'a');
    vw_view_window(v, v->marks[v->last_mark] - span / 2, v->marks[v->last_mark] - span / 2 + span);
    return 0;
}

/* :save-display FILE. */
static int save_display(struct vw_view *v, const char *path)
{
    struct st_error why = {0};

    v->prompt[0] = '\0';
    if (vw_draw(v, &why) || vw_save_screen(v->screen, path, &why))
        st_safe_text(v->message, sizeof(v->message), why.text);
    else
        snprintf(v->message, sizeof(v->message), "the screen is in %.400s", path);
    return 0;
}

static int run_command(struct vw_view *v, struct st_error *err)
{
    static const char save[] = "save-display ";
    const char *names[96];
    const char *near;
    size_t n = 0;

    if (!strncmp(v->prompt, save, strlen(save)) && v->prompt[strlen(save)]) {
        char path[VW_PROMPT];

        memcpy(path, v->prompt + strlen(save), strlen(v->prompt + strlen(save)) + 1);
        return save_display(v, path);
    }
    names[n++] = "save-display";
    for (const struct vw_binding *b = vw_bindings; b->request != VW_REQ_NONE; b++) {
        if (!b->name)
            continue;
        names[n++] = b->name;
        if (!strcmp(b->name, v->prompt))
            return vw_view_request(v, b->request, err);
    }
    near = st_nearest(v->prompt, strlen(v->prompt), names, n);
    snprintf(v->message, sizeof(v->message),
             near ? "no command '%s': did you mean '%s'?" : "no command '%s'%.0s (? lists them)", v->prompt,
             near ? near : "");
    return 0;
}

static int finish_typing(struct vw_view *v, struct st_error *err)
{
    enum vw_mode mode = v->mode;

    v->mode = VW_MODE_TIMELINE;
    if (!v->prompt[0])
        return 0;
    if (mode == VW_MODE_COMMAND)
        return run_command(v, err);
    if (mode == VW_MODE_SQL)
        return vw_run_sql(v, v->prompt);
    memcpy(v->pattern, v->prompt, sizeof(v->pattern));
    return vw_view_request(v, VW_REQ_SEARCH_NEXT, err);
}

/* The last character and its continuation bytes. */
static void rub_out(char *text)
{
    size_t n = strlen(text);

    while (n && (text[n - 1] & 0xc0) == 0x80)
        n--;
    text[n ? n - 1 : 0] = '\0';
}

static void append(struct vw_view *v, uint32_t key)
{
    size_t n = strlen(v->prompt);

    if (key < ' ' || key == 127 || key >= VW_KEY_UP || n + 5 > sizeof(v->prompt))
        return;
    if (key < 0x80) {
        v->prompt[n++] = (char)key;
    } else if (key < 0x800) {
        v->prompt[n++] = (char)(0xc0 | key >> 6);
        v->prompt[n++] = (char)(0x80 | (key & 0x3f));
    } else if (key < 0x10000) {
        v->prompt[n++] = (char)(0xe0 | key >> 12);
        v->prompt[n++] = (char)(0x80 | (key >> 6 & 0x3f));
        v->prompt[n++] = (char)(0x80 | (key & 0x3f));
    }
    v->prompt[n] = '\0';
}

static int type(struct vw_view *v, uint32_t key, struct st_error *err)
{
    if (key == '\r' || key == '\n')
        return finish_typing(v, err);
    if (key == 033)
        v->mode = VW_MODE_TIMELINE;
    else if (key == VW_KEY_BACKSPACE || key == 127 || key == '\b')
        rub_out(v->prompt);
    else
        append(v, key);
    return 0;
}

static int handle_key(struct vw_view *v, uint32_t key, struct st_error *err)
{
    v->message[0] = '\0';
    if (key & VW_KEY_MOUSE && v->mode != VW_MODE_TIMELINE)
        return 0;
    switch (v->mode) {
    case VW_MODE_HELP:
        v->mode = VW_MODE_TIMELINE;
        return 0;
    case VW_MODE_SEARCH:
    case VW_MODE_COMMAND:
    case VW_MODE_SQL:
        return type(v, key, err);
    case VW_MODE_SET_MARK:
        return set_mark(v, key);
    case VW_MODE_GO_MARK:
        return go_mark(v, key);
    case VW_MODE_TIMELINE:
        break;
    }
    if (key & VW_KEY_MOUSE)
        return vw_view_mouse(v, key, err);
    if (v->list_open) {
        int rc = vw_list_key(v, key, err);

        if (rc)
            return rc < 0 ? rc : 0;
    }
    return vw_view_request(v, bound(key), err);
}

int vw_view_key(struct vw_view *v, uint32_t key, struct st_error *err)
{
    int rc;

    vw_trace_hold(v->trace);
    rc = handle_key(v, key, err);
    vw_trace_release(v->trace);
    return rc;
}
