/* The second plugin of dlopen_close: other functions, likely at the addresses the first one had. */
#include "tree.h"

OWN __attribute__((constructor)) void plugin_b_loaded(void)
{
    WORK();
}

OWN __attribute__((destructor)) void plugin_b_unloaded(void)
{
    WORK();
}

OWN int plugin_b_twice(int n)
{
    WORK();
    return 2 * n;
}

OWN int plugin_b_step(int n)
{
    return plugin_b_twice(n) + plugin_b_twice(n);
}

OWN int plugin_run(int (*callback)(int))
{
    return callback(plugin_b_step(1));
}
