/* The stack builder: into the kernel and out of it, signals, exec, time off the CPU. */
#include "stack_script.h"

#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void system_call_is_a_pseudo_frame(void **state)
{
    struct dec_offcpu off[] = {{30, 70, 0, 0}};
    struct script_options options = {.offcpu = off, .noffcpu = 1};

    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 read\n"
                                   "20 syscall read+8 -\n"
                                   "20 disable read+8 -\n"
                                   "80 enable - read+10 resumed\n"
                                   "90 ret read+20 main+21\n"
                                   "100 jmp main+30 main",
                                   &options),
                        "main 0+100 self 20 no-call no-return\n"
                        "  read 10+80 self 20\n"
                        "    [syscall] 20+60 self 20\n");
    assert_int_equal(off[0].call, 3);
}

/* A thread that has no CPU when the recording ends is where it was until then. One that had a CPU again is
 * not told of beyond its last branch: what it did there is not known. */
static void who_is_off_its_cpu_at_the_end_stays(void **state)
{
    static const char script[] = "0 enable - main\n"
                                 "10 call main+16 a\n"
                                 "20 call a+8 read";
    static const char whole[] = "main 0+100 self 10 no-call no-return\n"
                                "  a 10+90 self 10 no-return\n"
                                "    read 20+80 self 10 no-return\n";
    static const char known[] = "main 0+20 self 10 no-call no-return\n"
                                "  a 10+10 self 10 no-return\n"
                                "    read 20+0 self 0 no-return\n";

    (void)state;
    for (uint64_t end = 99; end <= 101; end++) {
        struct dec_offcpu off = {30, end, 0, 0};
        struct script_options options = {.offcpu = &off, .noffcpu = 1, .end = 100};

        assert_string_equal(script_run(script, &options), end < 100 ? known : whole);
    }
}

static void interrupt_goes_on_at_the_same_place(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "20 disable a+8 - async\n"
                                   "30 enable - a+8 resumed\n"
                                   "40 ret a+8 main+21",
                                   NULL),
                        "main 0+40 self 10 no-call no-return\n"
                        "  a 10+30 self 20\n"
                        "    [interrupt] 20+10 self 10\n");
}

/* A handler in a system call: the call goes on behind it, or is made again. */
static void signal_interrupts_a_system_call(void **state)
{
    static const char script[] = "0 enable - read\n"
                                 "10 syscall read+8 -\n"
                                 "10 disable read+8 -\n"
                                 "20 enable - handler\n"
                                 "25 call handler+8 a\n"
                                 "30 ret a+8 handler+13\n"
                                 "40 ret handler+20 restorer\n"
                                 "50 syscall restorer+7 -\n"
                                 "50 disable restorer+7 -\n"
                                 "60 enable - %s\n"
                                 "70 jmp read+20 read+12";
    char text[512];

    (void)state;
    for (int restarted = 0; restarted < 2; restarted++) {
        snprintf(text, sizeof(text), script, restarted ? "read+8" : "read+10");
        assert_string_equal(script_run(text, NULL), "read 0+70 self 20 no-call no-return\n"
                                                    "  [syscall] 10+10 self 10\n"
                                                    "  [signal] 20+40 self 10\n"
                                                    "    handler 20+20 self 15\n"
                                                    "      a 25+5 self 5\n"
                                                    "    [syscall] 50+10 self 10\n");
    }
}

static void nested_signals(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 disable main+8 - async\n"
                                   "20 enable - handler\n"
                                   "30 disable handler+8 - async\n"
                                   "40 enable - handler2\n"
                                   "50 ret handler2+8 restorer\n"
                                   "52 syscall restorer+7 -\n"
                                   "52 disable restorer+7 -\n"
                                   "60 enable - handler+8\n"
                                   "70 ret handler+9 restorer\n"
                                   "72 syscall restorer+7 -\n"
                                   "72 disable restorer+7 -\n"
                                   "80 enable - main+8\n"
                                   "90 jmp main+9 main",
                                   NULL),
                        "main 0+90 self 20 no-call no-return\n"
                        "  [interrupt] 10+10 self 10\n"
                        "  [signal] 20+60 self 2\n"
                        "    handler 20+50 self 20\n"
                        "      [interrupt] 30+10 self 10\n"
                        "      [signal] 40+20 self 2 again\n"
                        "        handler2 40+10 self 10\n"
                        "        [syscall] 52+8 self 8\n"
                        "    [syscall] 72+8 self 8\n");
}

static void longjmp_out_of_a_handler(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 a\n"
                                   "20 disable a+8 - async\n"
                                   "30 enable - handler\n"
                                   "40 call handler+8 longjmp\n"
                                   "50 jmp longjmp+20 main+40 indirect\n"
                                   "60 jmp main+44 main",
                                   NULL),
                        "main 0+60 self 20 no-call no-return\n"
                        "  a 10+40 self 10 no-return\n"
                        "    [interrupt] 20+10 self 10\n"
                        "    [signal] 30+20 self 0\n"
                        "      handler 30+20 self 10 no-return\n"
                        "        longjmp 40+10 self 10 no-return\n");
}

static void exec_begins_a_new_stack(void **state)
{
    uint64_t execs[] = {5000000, 30000000};
    struct script_options options = {.execs = execs, .nexecs = 2};

    (void)state;
    assert_string_equal(script_run("5000010 enable - _start\n"
                                   "12000000 call _start+8 main\n"
                                   "20000000 syscall main+8 -\n"
                                   "20000000 disable main+8 -\n"
                                   "30000040 enable - _start\n"
                                   "50000000 call _start+8 a\n"
                                   "60000000 ret a+8 _start+13",
                                   &options),
                        "_start 5000010+25000030 self 6999990 no-return\n"
                        "  main 12000000+18000040 self 8000000 no-return\n"
                        "    [syscall] 20000000+10000040 self 10000040\n"
                        "_start 30000040+29999960 self 19999960 no-return\n"
                        "  a 50000000+10000000 self 10000000\n");
}

/* The thread is still in the kernel when the recording ends: that time is the system call's, up to the end.
 */
static void still_in_the_kernel_at_the_end(void **state)
{
    struct dec_offcpu off[] = {{30, 500, 0, 0}};
    struct script_options options = {.end = 500, .offcpu = off, .noffcpu = 1};

    (void)state;
    assert_string_equal(script_run("0 enable - read\n"
                                   "10 syscall read+8 -\n"
                                   "10 disable read+8 -",
                                   &options),
                        "read 0+500 self 10 no-call no-return\n"
                        "  [syscall] 10+490 self 20 no-return\n");
    assert_int_equal(off[0].call, 2);
}

/* In a trace of the kernel too: it was switched off its CPU in a call, which lasts until the end. A time off
 * the CPU that is over says nothing of that. */
static void off_its_cpu_at_the_end(void **state)
{
    struct dec_offcpu off[] = {{30, 500, 0, 0}};
    struct script_options options = {.end = 500, .offcpu = off, .noffcpu = 1};

    (void)state;
    assert_string_equal(script_run("0 enable - main\n10 call main+8 a", &options),
                        "main 0+500 self 10 no-call no-return\n"
                        "  a 10+490 self 20 no-return\n");
    off[0].end = 400;
    assert_string_equal(script_run("0 enable - main\n10 call main+8 a", &options),
                        "main 0+10 self 10 no-call no-return\n"
                        "  a 10+0 self 0 no-return\n");
}

static void still_running_at_the_end(void **state)
{
    struct script_options options = {.end = 500};

    (void)state;
    assert_string_equal(script_run("0 enable - main\n10 jmp main+8 main", &options),
                        "main 0+10 self 10 no-call no-return\n");
}

/* The clock of the trace lags: the thread was off its CPU before the trace says that it entered the kernel.
 */
static void off_cpu_belongs_to_the_system_call(void **state)
{
    struct dec_offcpu off[] = {{15, 60, 0, 0}, {70, 75, 1, 0}, {76, 79, 1, 0}};
    struct script_options options = {.offcpu = off, .noffcpu = 3};

    (void)state;
    assert_string_equal(script_run("0 enable - read\n"
                                   "20 syscall read+8 -\n"
                                   "20 disable read+8 -\n"
                                   "65 enable - read+10 resumed\n"
                                   "80 ret read+20 a+4\n"
                                   "90 jmp a+10 a",
                                   &options),
                        "a 0+90 self 10 no-call no-return\n"
                        "  read 0+80 self 22 no-call\n"
                        "    [syscall] 20+45 self 5\n");
    assert_int_equal(off[0].call, 3);
    assert_int_equal(off[1].call, 2);
    assert_int_equal(off[2].call, 2);
}

static void kernel_traced_too(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 read\n"
                                   "20 syscall read+8 k_syscall\n"
                                   "25 call k_syscall+8 k_read\n"
                                   "30 async k_read+16 k_irq\n"
                                   "35 sysret k_irq+40 k_read+16\n"
                                   "40 ret k_read+30 k_syscall+13\n"
                                   "50 sysret k_syscall+40 read+10\n"
                                   "60 ret read+20 main+21\n"
                                   "70 async main+30 k_irq\n"
                                   "75 sysret k_irq+40 handler\n"
                                   "80 ret handler+8 restorer\n"
                                   "85 syscall restorer+7 k_syscall\n"
                                   "90 sysret k_syscall+40 main+30\n"
                                   "95 jmp main+40 main",
                                   NULL),
                        "main 0+95 self 25 no-call no-return\n"
                        "  read 10+50 self 20\n"
                        "    k_syscall 20+30 self 15\n"
                        "      k_read 25+15 self 10\n"
                        "        k_irq 30+5 self 5\n"
                        "  k_irq 70+5 self 5\n"
                        "  [signal] 75+15 self 5\n"
                        "    handler 75+5 self 5\n"
                        "    k_syscall 85+5 self 5\n");
}

/* A page fault in a system call, an interrupt in its handler, an NMI in that, and an NMI in each on the way
 * out. */
static void the_kernel_is_entered_within_itself(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 syscall main+8 k_syscall\n"
                                   "12 call k_syscall+8 k_read\n"
                                   "14 async k_read+16 k_fault\n"
                                   "16 call k_fault+8 k_msr\n"
                                   "18 async k_msr+8 k_irq\n"
                                   "20 async k_irq+12 k_nmi\n"
                                   "22 sysret k_nmi+40 k_irq+12\n"
                                   "24 sysret k_irq+40 k_msr+8\n"
                                   "26 async k_msr+8 k_nmi\n"
                                   "28 sysret k_nmi+40 k_msr+8\n"
                                   "30 ret k_msr+30 k_fault+13\n"
                                   "32 sysret k_fault+40 k_read+16\n"
                                   "34 ret k_read+30 k_syscall+13\n"
                                   "36 async k_syscall+20 k_nmi\n"
                                   "38 sysret k_nmi+40 k_syscall+20\n"
                                   "40 sysret k_syscall+40 main+10\n"
                                   "50 async main+12 k_fault\n"
                                   "52 async k_fault+4 k_irq\n"
                                   "54 sysret k_irq+40 k_fault+4\n"
                                   "56 sysret k_fault+40 main+12\n"
                                   "60 jmp main+40 main",
                                   NULL),
                        "main 0+60 self 24 no-call no-return\n"
                        "  k_syscall 10+30 self 6\n"
                        "    k_read 12+22 self 4\n"
                        "      k_fault 14+18 self 4\n"
                        "        k_msr 16+14 self 6\n"
                        "          k_irq 18+6 self 4\n"
                        "            k_nmi 20+2 self 2\n"
                        "          k_nmi 26+2 self 2\n"
                        "    k_nmi 36+2 self 2\n"
                        "  k_fault 50+6 self 4\n"
                        "    k_irq 52+2 self 2\n");
    assert_int_equal(script_counts().strays, 0);
}

/* The same place is interrupted again and again: by a fault that is made good, and by a timer, with no
 * instruction between. */
static void a_place_that_is_interrupted_again(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 async main+12 k_fault\n"
                                   "12 sysret k_fault+40 main+12\n"
                                   "12 async main+12 k_irq\n"
                                   "14 async k_irq+4 k_nmi\n"
                                   "16 sysret k_nmi+40 k_irq+4\n"
                                   "16 async k_irq+4 k_nmi\n"
                                   "18 sysret k_nmi+40 k_irq+4\n"
                                   "20 sysret k_irq+40 main+12\n"
                                   "30 jmp main+40 main",
                                   NULL),
                        "main 0+30 self 20 no-call no-return\n"
                        "  k_fault 10+2 self 2\n"
                        "  k_irq 12+8 self 4\n"
                        "    k_nmi 14+2 self 2\n"
                        "    k_nmi 16+2 self 2\n");
}

static void begins_in_the_kernel(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - k_read+8\n"
                                   "10 ret k_read+9 k_syscall+13\n"
                                   "20 sysret k_syscall+40 read+10\n"
                                   "30 ret read+12 main+21\n"
                                   "40 jmp main+30 main",
                                   NULL),
                        "main 0+40 self 10 no-call no-return\n"
                        "  read 0+30 self 10 no-call\n"
                        "    k_syscall 0+20 self 10 no-call\n"
                        "      k_read 0+10 self 10 no-call\n");
}

/* Recording stops and starts deep in the scheduler; the frames between are not seen, the function they return
 * to is. */
static void switched_off_and_on_in_the_kernel(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 syscall main+8 k_syscall\n"
                                   "12 call k_syscall+8 k_sched\n"
                                   "14 call k_sched+8 k_msr\n"
                                   "16 disable k_msr+8 -\n"
                                   "50 enable - k_irq+8\n"
                                   "55 ret k_irq+20 k_sched+60\n"
                                   "60 ret k_sched+70 k_syscall+13\n"
                                   "70 sysret k_syscall+40 main+10\n"
                                   "80 jmp main+40 main",
                                   NULL),
                        "main 0+80 self 20 no-call no-return\n"
                        "  k_syscall 10+60 self 12\n"
                        "    k_sched 12+48 self 7\n"
                        "      k_msr 14+36 self 36 no-return\n"
                        "      k_irq 50+5 self 5 no-call\n");
}

static void kernel_only(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - k_syscall\n"
                                   "10 call k_syscall+8 k_read\n"
                                   "20 ret k_read+30 k_syscall+13\n"
                                   "30 sysret k_syscall+40 -\n"
                                   "30 disable k_syscall+40 -\n"
                                   "50 enable - k_irq\n"
                                   "60 sysret k_irq+40 -\n"
                                   "60 disable k_irq+40 -",
                                   NULL),
                        "k_syscall 0+30 self 20 no-call\n"
                        "  k_read 10+10 self 10\n"
                        "k_irq 50+10 self 10\n");
}

static void call_out_of_what_is_traced(void **state)
{
    (void)state;
    assert_string_equal(script_run("0 enable - main\n"
                                   "10 call main+16 -\n"
                                   "10 disable main+16 -\n"
                                   "30 enable - main+21 resumed\n"
                                   "40 call main+32 a\n"
                                   "50 ret a+8 -\n"
                                   "50 disable a+8 -\n"
                                   "60 enable - main+37\n"
                                   "70 jmp main+40 main",
                                   NULL),
                        "main 0+70 self 40 no-call no-return\n"
                        "  [untraced] 10+20 self 20\n"
                        "  a 40+10 self 10\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(system_call_is_a_pseudo_frame),
        cmocka_unit_test(who_is_off_its_cpu_at_the_end_stays),
        cmocka_unit_test(interrupt_goes_on_at_the_same_place),
        cmocka_unit_test(signal_interrupts_a_system_call),
        cmocka_unit_test(nested_signals),
        cmocka_unit_test(longjmp_out_of_a_handler),
        cmocka_unit_test(exec_begins_a_new_stack),
        cmocka_unit_test(still_in_the_kernel_at_the_end),
        cmocka_unit_test(off_its_cpu_at_the_end),
        cmocka_unit_test(still_running_at_the_end),
        cmocka_unit_test(off_cpu_belongs_to_the_system_call),
        cmocka_unit_test(kernel_traced_too),
        cmocka_unit_test(the_kernel_is_entered_within_itself),
        cmocka_unit_test(a_place_that_is_interrupted_again),
        cmocka_unit_test(begins_in_the_kernel),
        cmocka_unit_test(switched_off_and_on_in_the_kernel),
        cmocka_unit_test(kernel_only),
        cmocka_unit_test(call_out_of_what_is_traced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
