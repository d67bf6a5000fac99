/* By descriptor where there is one, else by path. */
#include "decoder/cmd/given.h"

#include "base/folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int dec_given_input(const struct decode_options *o, enum st_infile_kind kind)
{
    return o->given_input ? st_infile_reopen((int)o->given_input, kind) : st_infile_open(o->input, kind);
}

int dec_given_stat_input(const struct decode_options *o, struct stat *st)
{
    return o->given_input ? fstat((int)o->given_input, st) : stat(o->input, st);
}

int dec_given_stat_output(const struct decode_options *o, struct stat *st)
{
    return o->given_folder ? fstatat((int)o->given_folder, st_folder_name(o->output), st, AT_SYMLINK_NOFOLLOW)
                           : stat(o->output, st);
}

int dec_given_output(const struct decode_options *o, struct st_outfile *out, struct st_error *err)
{
    return o->given_folder
               ? st_outfile_open_at(out, (int)o->given_folder, st_folder_name(o->output), o->output, err)
               : st_outfile_open(out, o->output, err);
}

/* `path` from the root, with the links in it as they are; malloc'd, or NULL. */
static char *absolute(const char *path)
{
    char *folder = path[0] == '/' ? strdup("") : getcwd(NULL, 0);
    char *full = NULL;

    if (folder && asprintf(&full, "%s%s%s", folder, *folder ? "/" : "", path) < 0)
        full = NULL;
    free(folder);
    return full;
}

/* `arm` named the folder by its prefix; who decodes it later may have come to it by another path. */
static char *full_name(const struct decode_options *o)
{
    if (!o->input)
        return NULL;
    return o->given_folder ? absolute(o->input) : realpath(o->input, NULL);
}

int dec_given_code(const struct decode_options *o, char name[PATH_MAX])
{
    static const char suffix[] = ".data";
    char *full = full_name(o);
    size_t n = full ? strlen(full) : 0;
    int folder = -1;

    if (n > sizeof(suffix) && n < PATH_MAX - 8 && !strcmp(full + n - (sizeof(suffix) - 1), suffix)) {
        snprintf(name, PATH_MAX, "%.*s.code", (int)(n - (sizeof(suffix) - 1)), full);
        folder = openat(o->given_folder ? (int)o->given_folder : AT_FDCWD,
                        o->given_folder ? st_folder_name(name) : name,
                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    free(full);
    return folder;
}
