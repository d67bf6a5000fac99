/* Loads plugin_a, runs and unloads it, then plugin_b, then plugin_a again: code comes and goes at the same
 * addresses. */
#include "tree.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

OWN int called_back(int n)
{
    WORK();
    return n;
}

OWN void *load_plugin(const char *folder, const char *name)
{
    char path[PATH_MAX];
    void *plugin;

    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
        return NULL;
    plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin)
        fprintf(stderr, "dlopen_close: %s\n", dlerror());
    return plugin;
}

OWN void unload_plugin(void *plugin)
{
    dlclose(plugin);
    WORK();
}

OWN int use_plugin(const char *folder, const char *name)
{
    void *plugin = load_plugin(folder, name);
    int result = -1;

    if (!plugin)
        return result;
    int (*run)(int (*)(int)) = (int (*)(int (*)(int)))dlsym(plugin, "plugin_run");
    if (run)
        result = run(called_back);
    unload_plugin(plugin);
    return result;
}

int main(int argc, char **argv)
{
    (void)argc;
    const char *folder = dirname(argv[0]);
    int sum = use_plugin(folder, "plugin_a.so");

    sum += use_plugin(folder, "plugin_b.so");
    sum += use_plugin(folder, "plugin_a.so");
    return sum == 2 + 4 + 2 ? 0 : 1;
}
