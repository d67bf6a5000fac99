/* The first plugin of dlopen_close: a constructor, a destructor, and a call back into the program. */
#include "tree.h"

OWN __attribute__((constructor)) void plugin_a_loaded(void)
{
    WORK();
}

OWN __attribute__((destructor)) void plugin_a_unloaded(void)
{
    WORK();
}

OWN int plugin_a_step(int n)
{
    WORK();
    return n + 1;
}

OWN int plugin_run(int (*callback)(int))
{
    return callback(plugin_a_step(1));
}
