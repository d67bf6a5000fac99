/* Where the predicate's hit fires the tracepoint that pauses PT: shared by probe_auxpause.c and its BPF
 * program. */
#ifndef PTVM_PROBE_AUXPAUSE_H
#define PTVM_PROBE_AUXPAUSE_H

enum place {
    AT_SWITCH,   /* in sched_switch itself, where the woken thread is next */
    AT_FINISH,   /* the next finish_task_switch by kprobe, if this kernel has the name */
    AT_SCHEDULE, /* as schedule() returns in the woken thread, by fexit */
    AT_SYS_EXIT, /* as the woken thread's system call ends */
    AT_TIMER,    /* in the softirq of a timer that was started with no delay */
    PLACES
};

#endif
