/* What every program with a known call tree uses: functions that stay functions, and work that stays work. */
#ifndef WORKLOAD_TREE_H
#define WORKLOAD_TREE_H

/* Never inlined, cloned, merged, or left out: each call in the source is a call in the program. Not static,
 * so that the name is in the dynamic symbol table of the instrumented build. */
#if defined(__has_attribute) && __has_attribute(noipa)
#define OWN __attribute__((noipa))
#else
#define OWN __attribute__((noinline))
#endif

/* Not to be instrumented: runs before, or outside of, what the instrumentation needs. */
#define OWN_QUIET OWN __attribute__((no_instrument_function))

/* Something a function does, so that no compiler finds its call without effect. */
static volatile unsigned work_done;
#define WORK() ((void)(work_done += 1))

/* Says that [BASE, BASE + BYTES) is a stack of its own (a coroutine's), or a stack for signal handlers (NAME
 * ""). Only the instrumented build wants to know. */
#ifdef TREE_LOG
#ifdef __cplusplus
extern "C"
#endif
    void
    tree_log_stack(const char *name, const void *base, unsigned long bytes);
#define OWN_STACK(name, base, bytes) tree_log_stack(name, base, bytes)
#else
#define OWN_STACK(name, base, bytes) ((void)(name), (void)(base), (void)(bytes))
#endif

#endif
