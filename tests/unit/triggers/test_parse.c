/* The trigger language: what is taken, and how each refusal points at its place. */
#include "base/syscalls.h"
#include "triggers/language/kind.h"
#include "triggers/language/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define KINDS                                                                                                \
    "offcpu, syscall, runq, func, call, busy, quiet, socket, irq, softirq, tracepoint, usdt, bpf, bpftrace"

struct rejected {
    const char *text;

    int column; /* of the first caret, from 0 */

    int width; /* how many carets */

    const char *says; /* the sentence */

    const char *hint; /* in the last line; NULL: no suggestion */
};

static const struct rejected rejected[] = {
    /* kinds */
    {"", 0, 1, "a trigger begins with its kind (" KINDS ")", NULL},
    {">20ms", 0, 1, "a trigger begins with its kind (" KINDS ")", NULL},
    {",state=blocked", 0, 1, "a trigger begins with its kind (" KINDS ")", NULL},
    {":x>20ms", 0, 1, "a trigger begins with its kind (" KINDS ")", NULL},
    {" offcpu>20ms", 0, 1, "a trigger begins with its kind (" KINDS ")", NULL},
    {"ofcpu>20ms", 0, 5, "unknown kind of trigger 'ofcpu' (there is: " KINDS ")", "did you mean 'offcpu'?"},
    {"offcup>20ms", 0, 6, "unknown kind of trigger 'offcup' (there is: " KINDS ")", "did you mean 'offcpu'?"},
    {"OFFCPU>20ms", 0, 6, "unknown kind of trigger 'OFFCPU' (there is: " KINDS ")", "did you mean 'offcpu'?"},
    {"off-cpu>20ms", 0, 7, "unknown kind of trigger 'off-cpu' (there is: " KINDS ")",
     "did you mean 'offcpu'?"},
    {"offcpuu", 0, 7, "unknown kind of trigger 'offcpuu' (there is: " KINDS ")", "did you mean 'offcpu'?"},
    {"offcp", 0, 5, "unknown kind of trigger 'offcp' (there is: " KINDS ")", "did you mean 'offcpu'?"},
    {"20ms", 0, 4, "unknown kind of trigger '20ms' (there is: " KINDS ")", NULL},
    {"latency>20ms", 0, 7, "unknown kind of trigger 'latency' (there is: " KINDS ")", NULL},
    {"sleep>1s,state=blocked", 0, 5, "unknown kind of trigger 'sleep' (there is: " KINDS ")", NULL},
    {"\x1b[31moffcpu>20ms", 0, 14, "unknown kind of trigger '\\x1b[31moffcpu' (there is: " KINDS ")", NULL},
    {"\xc3\xa4>1s", 0, 1, "unknown kind of trigger '\xc3\xa4' (there is: " KINDS ")", NULL},
    /* no threshold */
    {"offcpu", 6, 1, "'offcpu' needs a threshold", "write it as offcpu>20ms"},
    {"offcpu,state=blocked", 6, 1, "'offcpu' needs a threshold", "write it as offcpu>20ms"},
    {"offcpu:recv>20ms", 6, 5, "'offcpu' takes no name", "write it as offcpu>20ms"},
    {"offcpu:>20ms", 6, 1, "'offcpu' takes no name", "write it as offcpu>20ms"},
    {"offcpu<20ms", 6, 1, "'>' and a duration must follow 'offcpu'", "write it as offcpu>20ms"},
    {"offcpu=20ms", 6, 1, "'>' and a duration must follow 'offcpu'", "write it as offcpu>20ms"},
    {"offcpu >20ms", 6, 1, "no spaces in a trigger", "write it as offcpu>20ms"},
    {"offcpu  20ms", 6, 2, "no spaces in a trigger", "write it as offcpu>20ms"},
    {"offcpu\t>20ms", 6, 4, "no spaces in a trigger", "write it as offcpu>20ms"},
    /* thresholds */
    {"offcpu>", 7, 1, "a duration must follow '>', as in offcpu>20ms", NULL},
    {"offcpu>,state=blocked", 7, 1, "a duration must follow '>', as in offcpu>20ms", NULL},
    {"offcpu>20", 7, 2, "a threshold needs a unit (ns, us, ms, s, m, h)", "did you mean '20ms'?"},
    {"offcpu>1.5", 7, 3, "a threshold needs a unit (ns, us, ms, s, m, h)", "did you mean '1.5ms'?"},
    {"offcpu>20,state=blocked", 7, 2, "a threshold needs a unit (ns, us, ms, s, m, h)",
     "did you mean '20ms'?"},
    {"offcpu>1,5ms", 7, 1, "a threshold needs a unit (ns, us, ms, s, m, h)", "did you mean '1ms'?"},
    {"offcpu>20msec", 9, 4, "unknown unit 'msec' (ns, us, ms, s, m, h)", "did you mean 'ms'?"},
    {"offcpu>20mss", 9, 3, "unknown unit 'mss' (ns, us, ms, s, m, h)", "did you mean 'ms'?"},
    {"offcpu>20sm", 9, 2, "unknown unit 'sm' (ns, us, ms, s, m, h)", "did you mean 'ms'?"},
    {"offcpu>20sec", 9, 3, "unknown unit 'sec' (ns, us, ms, s, m, h)", "did you mean 's'?"},
    {"offcpu>20MS", 9, 2, "unknown unit 'MS' (ns, us, ms, s, m, h)", "did you mean 'ms'?"},
    {"offcpu>20parsec", 9, 6, "unknown unit 'parsec' (ns, us, ms, s, m, h)", NULL},
    {"offcpu>20 ms", 9, 1, "no spaces in a trigger", NULL},
    {"offcpu>20ms ", 11, 1, "no spaces in a trigger", NULL},
    {"offcpu> 20ms", 7, 1, "no spaces in a trigger", NULL},
    {"offcpu>=20ms", 7, 1, "write '>', not '>='", NULL},
    {"offcpu>>20ms", 7, 5, "'>20ms' is no duration: write a number and a unit, as 20ms, or 'worst'", NULL},
    {"offcpu>ms", 7, 2, "'ms' is no duration: write a number and a unit, as 20ms, or 'worst'", NULL},
    {"offcpu>-5ms", 7, 4, "'-5ms' is no duration: write a number and a unit, as 20ms, or 'worst'", NULL},
    {"offcpu>+5ms", 7, 4, "'+5ms' is no duration: write a number and a unit, as 20ms, or 'worst'", NULL},
    {"offcpu>.5ms", 7, 4, "'.5ms' is no duration: write a number and a unit, as 20ms, or 'worst'", NULL},
    {"offcpu>0x10ms", 7, 6, "'0x10ms' is no duration: write a number and a unit, as 20ms, or 'worst'", NULL},
    {"offcpu>inf", 7, 3, "'inf' is no duration: write a number and a unit, as 20ms, or 'worst'", NULL},
    {"offcpu>wurst", 7, 5, "'wurst' is no duration: write a number and a unit, as 20ms, or 'worst'",
     "did you mean 'worst'?"},
    {"offcpu>worst!", 7, 6, "'worst!' is no duration: write a number and a unit, as 20ms, or 'worst'",
     "did you mean 'worst'?"},
    {"offcpu>Worst", 7, 5, "'Worst' is no duration: write a number and a unit, as 20ms, or 'worst'",
     "did you mean 'worst'?"},
    {"offcpu>0", 7, 1, "the threshold must be more than 0", NULL},
    {"offcpu>0ms", 7, 3, "the threshold must be more than 0", NULL},
    {"offcpu>0.1ns", 7, 5, "the threshold must be more than 0", NULL},
    {"offcpu>25h", 7, 3, "the threshold is too long: at most 24h", NULL},
    {"offcpu>99999999999999h", 7, 15, "the threshold is too long: at most 24h", NULL},
    {"offcpu>1e400ms", 8, 6, "unknown unit 'e400ms' (ns, us, ms, s, m, h)", NULL},
    /* keys */
    {"offcpu>20ms,", 12, 1, "KEY=VALUE must follow ','", NULL},
    {"offcpu>20ms,,state=blocked", 12, 1, "KEY=VALUE must follow ','", NULL},
    {"offcpu>20ms,=blocked", 12, 1, "KEY=VALUE must follow ','", NULL},
    {"offcpu>20ms,stat=blocked", 12, 4, "'offcpu' has no key 'stat'", "did you mean 'state'?"},
    {"offcpu>20ms,states=blocked", 12, 6, "'offcpu' has no key 'states'", "did you mean 'state'?"},
    {"offcpu>20ms,State=blocked", 12, 5, "'offcpu' has no key 'State'", "did you mean 'state'?"},
    {"offcpu>20ms,idel=yes", 12, 4, "'offcpu' has no key 'idel'", "did you mean 'idle'?"},
    {"offcpu>20ms,blocked", 12, 7, "'offcpu' has no key 'blocked'", NULL},
    {"offcpu>20ms, state=blocked", 12, 6, "'offcpu' has no key ' state'", "did you mean 'state'?"},
    {"offcpu>20ms,side=unsent", 12, 4, "'offcpu' has no key 'side'", "did you mean 'idle'?"},
    {"offcpu>20ms,state", 17, 1, "state needs '=' and blocked, sleeping or preempted", NULL},
    {"offcpu>20ms,state,idle=yes", 17, 1, "state needs '=' and blocked, sleeping or preempted", NULL},
    {"offcpu>20ms,state=", 18, 1, "state= needs blocked, sleeping or preempted", NULL},
    {"offcpu>20ms,state=,idle=yes", 18, 1, "state= needs blocked, sleeping or preempted", NULL},
    {"offcpu>20ms,state=blokced", 18, 7, "state=: 'blokced' is not blocked, sleeping or preempted",
     "did you mean 'blocked'?"},
    {"offcpu>20ms,state=sleep", 18, 5, "state=: 'sleep' is not blocked, sleeping or preempted", NULL},
    {"offcpu>20ms,state=S", 18, 1, "state=: 'S' is not blocked, sleeping or preempted", NULL},
    {"offcpu>20ms,state=blocked+", 26, 1, "state= needs blocked, sleeping or preempted", NULL},
    {"offcpu>20ms,state=+blocked", 18, 1, "state= needs blocked, sleeping or preempted", NULL},
    {"offcpu>20ms,state=blocked+sleping", 26, 7, "state=: 'sleping' is not blocked, sleeping or preempted",
     "did you mean 'sleeping'?"},
    {"offcpu>20ms,state=blocked,sleping", 26, 7, "state=: 'sleping' is not blocked, sleeping or preempted",
     "did you mean 'sleeping'?"},
    {"offcpu>20ms,state=blocked=sleeping", 18, 16,
     "state=: 'blocked=sleeping' is not blocked, sleeping or preempted", NULL},
    {"offcpu>20ms,state=blocked,state=sleeping", 26, 5, "state= was given before", NULL},
    {"offcpu>20ms,idle=yes,idle=read", 21, 4, "idle= was given before", NULL},
    {"offcpu>20ms,idle=", 17, 1, "idle= needs list, learned, none or the name of a system call", NULL},
    {"offcpu>20ms,idle=yess", 17, 4, "idle=: 'yess' is not list, learned, none or the name of a system call",
     "did you mean 'yes'?"},
    {"offcpu>20ms,idle=recvform", 17, 8,
     "idle=: 'recvform' is not list, learned, none or the name of a system call", "did you mean 'recvfrom'?"},
    {"offcpu>20ms,idle=read+wirte", 22, 5,
     "idle=: 'wirte' is not list, learned, none or the name of a system call", "did you mean 'write'?"},
    {"offcpu>20ms,idle=no_such_system_call_at_all", 17, 26,
     "idle=: 'no_such_system_call_at_all' is not list, learned, none or the name of a system call", NULL},
    /* the kinds among themselves */
    {"sysccall>5ms", 0, 8, "unknown kind of trigger 'sysccall' (there is: " KINDS ")",
     "did you mean 'syscall'?"},
    {"sofitrq>5ms", 0, 7, "unknown kind of trigger 'sofitrq' (there is: " KINDS ")",
     "did you mean 'softirq'?"},
    {"fucn:x>5ms", 0, 4, "unknown kind of trigger 'fucn' (there is: " KINDS ")", "did you mean 'func'?"},
    {"tracepiont:a:b", 0, 10, "unknown kind of trigger 'tracepiont' (there is: " KINDS ")",
     "did you mean 'tracepoint'?"},
    {"runq:x>5ms", 4, 2, "'runq' takes no name", "write it as runq>2ms"},
    {"busy:x>5ms", 4, 2, "'busy' takes no name", "write it as busy>5ms"},
    {"socket:x>5ms", 6, 2, "'socket' takes no name", "write it as socket>5ms"},
    {"syscall", 7, 1, "'syscall' needs a threshold", "write it as syscall:fsync>5ms"},
    {"syscall:>5ms", 8, 1, "'syscall' needs the name of a system call", "write it as syscall:fsync>5ms"},
    {"syscall:recvform>5ms", 8, 8, "'recvform' is not the name of a system call", "did you mean 'recvfrom'?"},
    {"syscall:read", 12, 1, "'syscall' needs a threshold", "write it as syscall:fsync>5ms"},
    {"syscall:read>5ms,state=blocked", 17, 5, "'syscall' has no key 'state'", NULL},
    {"syscall:read>5ms,if", 19, 1, "if needs '=' and a condition, as arg0==3 or ret<0 (== != < <= > >= &)",
     NULL},
    {"syscall:read>5ms,if=", 20, 1, "if= needs a condition, as arg0==3 or ret<0 (== != < <= > >= &)", NULL},
    {"syscall:read>5ms,if=rte<0", 20, 5,
     "if=: 'rte<0' is not a condition, as arg0==3 or ret<0 (== != < <= > >= &)", "did you mean 'ret'?"},
    {"syscall:read>5ms,if=ret<0&&arg6==1", 27, 7,
     "if=: 'arg6==1' is not a condition, as arg0==3 or ret<0 (== != < <= > >= &)", "did you mean 'arg0'?"},
    {"syscall:read>5ms,if=ret<0&&", 27, 1, "if= needs a condition, as arg0==3 or ret<0 (== != < <= > >= &)",
     NULL},
    {"syscall:read>5ms,if=ret=0", 20, 5,
     "if=: 'ret=0' is not a condition, as arg0==3 or ret<0 (== != < <= > >= &)", "did you mean 'ret'?"},
    {"syscall:read>5ms,if=ret<x", 20, 5,
     "if=: 'ret<x' is not a condition, as arg0==3 or ret<0 (== != < <= > >= &)", "did you mean 'ret'?"},
    {"func>1ms", 4, 1, "'func' needs the name of a function: [MODULE!]NAME", "write it as func:malloc>100us"},
    {"func:>1ms", 5, 1, "'func' needs the name of a function: [MODULE!]NAME",
     "write it as func:malloc>100us"},
    {"func:libc!>1ms", 5, 5, "'libc!' is not the name of a function: [MODULE!]NAME", NULL},
    {"func:!malloc>1ms", 5, 7, "'!malloc' is not the name of a function: [MODULE!]NAME", NULL},
    {"func:mal loc>1ms", 8, 1, "no spaces in a trigger, but in a name between double quotes",
     "write it as func:\"mal loc\""},
    {"bpf:my rules.o", 6, 1, "no spaces in a trigger, but in a name between double quotes",
     "write it as bpf:\"my rules.o\""},
    {"bpf:\"my\" rules.o", 8, 1, "no spaces in a trigger, but in a name between double quotes", NULL},
    {"func:\"mal loc>1ms", 5, 1, "nothing closes the quotation mark", NULL},
    {"usdt:\"/a b\":\"p:n", 12, 1, "nothing closes the quotation mark", NULL},
    {"func:\"\">1ms", 5, 2, "'func' needs the name of a function: [MODULE!]NAME",
     "write it as func:malloc>100us"},
    {"bpf:\"my rules.c\"", 4, 12, "'\"my rules.c\"' is not a BPF object: FILE.o", NULL},
    {"func:malloc", 11, 1, "'func' needs a threshold", "write it as func:malloc>100us"},
    {"func:malloc>1ms,idle=yes", 16, 4, "'func' has no key 'idle'", NULL},
    {"call:malloc>1ms", 11, 4, "'call' takes no threshold: each hit fires", "write it as call:abort"},
    {"call", 4, 1, "'call' needs the name of a function: [MODULE!]NAME", "write it as call:abort"},
    {"call:malloc,if=ret==0", 15, 6, "if=: 'ret==0' is not a condition, as arg0==3 (== != < <= > >= &)",
     NULL},
    {"tracepoint:sched", 11, 5, "'sched' is not a tracepoint: CATEGORY:NAME", NULL},
    {"tracepoint:sched:", 11, 6, "'sched:' is not a tracepoint: CATEGORY:NAME", NULL},
    {"tracepoint:a:b:c", 11, 5, "'a:b:c' is not a tracepoint: CATEGORY:NAME", NULL},
    {"tracepoint:../x:y", 11, 6, "'../x:y' is not a tracepoint: CATEGORY:NAME", NULL},
    {"tracepoint:sched:sched_switch>5ms", 29, 4, "'tracepoint' takes no threshold: each hit fires",
     "write it as tracepoint:block:block_rq_issue"},
    {"tracepoint:a:b,if=x~y", 18, 3, "if=: 'x~y' is not a condition, as prev_pid==3 (== != < <= > >= &)",
     NULL},
    {"tracepoint:a:b,if=x==\"y", 18, 5,
     "if=: 'x==\"y' is not a condition, as prev_pid==3 (== != < <= > >= &)", NULL},
    {"tracepoint:a:b,if=x<\"y\"", 18, 5,
     "if=: 'x<\"y\"' is not a condition, as prev_pid==3 (== != < <= > >= &)", NULL},
    {"usdt:/bin/x:y", 5, 8, "'/bin/x:y' is not a probe: PATH:PROVIDER:NAME", NULL},
    {"usdt:/bin/x::z", 5, 9, "'/bin/x::z' is not a probe: PATH:PROVIDER:NAME", NULL},
    {"bpf:x.c", 4, 3, "'x.c' is not a BPF object: FILE.o", NULL},
    {"quiet>5ms", 5, 1, "'quiet' needs an event: CATEGORY:NAME of a tracepoint, or a function",
     "write it as quiet:heartbeat>50ms"},
    {"softirq:NET_XR>5ms", 8, 6, "'NET_XR' is not the name of a softirq, as NET_RX",
     "did you mean 'NET_RX'?"},
    {"socket>5ms,side=unred", 16, 5, "side=: 'unred' is not unread, unsent or unaccepted",
     "did you mean 'unread'?"},
    {"socket>5ms,sied=unread", 11, 4, "'socket' has no key 'sied'", "did you mean 'side'?"},
    {"offcpu>20ms,idle=learnt", 17, 6,
     "idle=: 'learnt' is not list, learned, none or the name of a system call", "did you mean 'learned'?"},
    {"syscall>20ms,idle=learned", 18, 7, "idle=: 'learned' is not list, none or the name of a system call",
     NULL},
    {"offcpu>20ms,idle=0", 17, 1, "idle=: '0' is not list, learned, none or the name of a system call", NULL},
};

static const char *line(const char *text, int n)
{
    for (; n && text; n--) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return text ? text : "";
}

static void check_rejected(const struct rejected *t)
{
    struct st_error err = {0};
    struct trg_spec spec;
    const char *carets, *last;
    char sentence[256];

    assert_int_equal(trg_parse(t->text, &spec, &err), ST_EUSAGE);
    assert_null(spec.text);
    assert_null(spec.options);
    assert_int_equal(err.code, ST_EUSAGE);
    snprintf(sentence, sizeof(sentence), "--on: %s\n", t->says);
    if (strncmp(err.text, sentence, strlen(sentence)))
        fail_msg("%s\n does not say: %s", err.text, t->says);
    carets = line(err.text, 2);
    if ((int)strspn(carets, " ") - 2 != t->column ||
        (int)strspn(carets + strspn(carets, " "), "^") != t->width)
        fail_msg("'%s': carets at %zu, %zu wide, expected %d, %d\n%s", t->text, strspn(carets, " ") - 2,
                 strspn(carets + strspn(carets, " "), "^"), t->column, t->width, err.text);
    last = line(err.text, 3);
    if (t->hint ? strcmp(last + strspn(last, " "), t->hint) != 0 : *last != '\0')
        fail_msg("%s\n expected the hint: %s", err.text, t->hint ? t->hint : "(none)");
    for (const char *c = err.text; *c; c++)
        assert_true(*c == '\n' || (unsigned char)*c >= 0x20);
}

static void test_rejected(void **state)
{
    (void)state;
    assert_true(sizeof(rejected) / sizeof(rejected[0]) >= 60);
    for (size_t i = 0; i < sizeof(rejected) / sizeof(rejected[0]); i++)
        check_rejected(&rejected[i]);
}

static void parse(const char *text, struct trg_spec *spec)
{
    struct st_error err = {0};

    if (trg_parse(text, spec, &err))
        fail_msg("'%s': %s", text, err.text);
    assert_string_equal(spec->text, text);
}

static void test_thresholds(void **state)
{
    static const struct {
        const char *text;

        uint64_t ns;
    } taken[] = {
        {"offcpu>20ms", 20000000},     {"offcpu>1ns", 1},
        {"offcpu>300us", 300000},      {"offcpu>1.5s", 1500000000},
        {"offcpu>0.5ms", 500000},      {"offcpu>2m", 120000000000},
        {"offcpu>2min", 120000000000}, {"offcpu>24h", 86400000000000},
        {"offcpu>020ms", 20000000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        struct trg_spec spec;

        parse(taken[i].text, &spec);
        assert_int_equal(spec.threshold_ns, taken[i].ns);
        assert_false(spec.worst);
        assert_ptr_equal(spec.kind, &trg_offcpu);
        trg_spec_free(&spec);
    }
}

static void test_worst(void **state)
{
    struct trg_spec spec;

    (void)state;
    parse("offcpu>worst,state=blocked", &spec);
    assert_true(spec.worst);
    assert_int_equal(spec.threshold_ns, 0);
    trg_spec_free(&spec);
}

static void test_states(void **state)
{
    static const struct {
        const char *text;

        uint32_t states;
    } taken[] = {
        {"offcpu>20ms", 0},
        {"offcpu>20ms,state=blocked", OFFCPU_BLOCKED},
        {"offcpu>20ms,state=sleeping", OFFCPU_SLEEPING},
        {"offcpu>20ms,state=preempted", OFFCPU_PREEMPTED},
        {"offcpu>20ms,state=blocked+preempted", OFFCPU_BLOCKED | OFFCPU_PREEMPTED},
        {"offcpu>20ms,state=blocked,sleeping,preempted", OFFCPU_ANY},
        {"offcpu>20ms,state=blocked,sleeping,idle=yes", OFFCPU_BLOCKED | OFFCPU_SLEEPING},
        {"offcpu>20ms,idle=yes,state=blocked+blocked", OFFCPU_BLOCKED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        struct trg_spec spec;

        parse(taken[i].text, &spec);
        assert_int_equal(spec.options->states, taken[i].states);
        trg_spec_free(&spec);
    }
}

static bool is_idle(const struct trg_spec *spec, const char *name)
{
    const struct trg_options *o = spec->options;
    int number = st_syscall_number(name, false);

    assert_true(number >= 0);
    return o->idle[number / 64] >> (number % 64) & 1;
}

static void test_idle(void **state)
{
    static const char *const waits[] = {"epoll_wait",      "epoll_pwait", "epoll_pwait2",    "poll",
                                        "ppoll",           "select",      "pselect6",        "accept",
                                        "accept4",         "nanosleep",   "clock_nanosleep", "pause",
                                        "rt_sigtimedwait", "wait4",       "waitid",          "rt_sigsuspend"};
    static const char *const stalls[] = {"read",  "recvfrom", "recvmsg",        "recvmmsg", "write",
                                         "fsync", "futex",    "io_uring_enter", "flock"};
    struct trg_spec spec;

    (void)state;
    parse("offcpu>20ms", &spec);
    assert_true(spec.options->learn_idle && !spec.options->show_places);
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
        assert_true(is_idle(&spec, waits[i]));
    for (size_t i = 0; i < sizeof(stalls) / sizeof(stalls[0]); i++)
        assert_false(is_idle(&spec, stalls[i]));
    trg_spec_free(&spec);
    parse("offcpu>20ms,idle=read+recvfrom,flock", &spec);
    assert_true(is_idle(&spec, "read") && is_idle(&spec, "recvfrom") && is_idle(&spec, "flock") &&
                is_idle(&spec, "poll"));
    assert_false(is_idle(&spec, "write"));
    assert_false(spec.options->count_idle);
    trg_spec_free(&spec);
    parse("busy>20ms,idle=list+read", &spec);
    assert_true(is_idle(&spec, "read") && !spec.options->learn_idle && !spec.options->show_places);
    trg_spec_free(&spec);
    parse("syscall>20ms", &spec);
    assert_false(spec.options->learn_idle);
    trg_spec_free(&spec);
    parse("offcpu>20ms,idle=yes", &spec);
    assert_true(spec.options->count_idle);
    trg_spec_free(&spec);
    parse("offcpu>20ms,idle=none", &spec);
    assert_true(spec.options->count_idle);
    trg_spec_free(&spec);
    parse("offcpu>20ms,idle=list", &spec);
    assert_false(spec.options->count_idle || spec.options->learn_idle);
    trg_spec_free(&spec);
    parse("busy>20ms,idle=learned+read", &spec);
    assert_true(spec.options->learn_idle && spec.options->show_places && is_idle(&spec, "read") &&
                is_idle(&spec, "poll"));
    trg_spec_free(&spec);
}

/* A long text is cut around the place, and the carets still stand under it. */
static void test_long_text(void **state)
{
    struct st_error err = {0};
    struct trg_spec spec;
    char text[2048] = "offcpu>20ms,idle=read";
    const char *shown, *carets;

    (void)state;
    while (strlen(text) < 1500)
        strcat(text, "+read");
    strcat(text, "+rread+write");
    assert_int_equal(trg_parse(text, &spec, &err), ST_EUSAGE);
    shown = line(err.text, 1);
    carets = line(err.text, 2);
    assert_int_equal(strncmp(shown, "  ...", 5), 0);
    assert_true(strcspn(shown, "\n") < 210);
    assert_int_equal(strncmp(shown + strspn(carets, " "), "rread+", 6), 0);
    assert_int_equal(strspn(carets + strspn(carets, " "), "^"), 5);
    assert_non_null(strstr(line(err.text, 3), "did you mean 'read'?"));
}

/* A path may be as long as the kernel takes it, and the last part of it is what counts. */
static void test_long_paths(void **state)
{
    static const struct {
        const char *kind, *suffix;
    } files[] = {{"bpftrace:", ".bt"}, {"bpf:", ".o"}, {"usdt:", ":libc:setjmp"}, {"call:", "!main"}};
    static const size_t lengths[] = {63, 64, 65, 255, 256, 1000, 4000};
    char text[8192], path[5000];

    (void)state;
    memset(path, 'p', sizeof(path));
    path[0] = '/';
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
            struct trg_spec spec;

            snprintf(text, sizeof(text), "%s%.*s%s", files[i].kind, (int)lengths[k], path, files[i].suffix);
            parse(text, &spec);
            assert_string_equal(spec.options->name, text + strlen(files[i].kind));
            trg_spec_free(&spec);
        }
}

/* What would end a name, or is no part of one, between double quotes or behind a backslash. */
static void test_quoted_names(void **state)
{
    static const struct {
        const char *text, *name;
    } taken[] = {
        {"bpf:\"/srv/my rules/slow one.o\"", "/srv/my rules/slow one.o"},
        {"bpf:/srv/\"my rules\"/slow\\ one.o", "/srv/my rules/slow one.o"},
        {"bpf:\"a,b>c.o\"", "a,b>c.o"},
        {"bpf:a\\,b\\>c.o", "a,b>c.o"},
        {"bpf:\"a\\\"b\\\\c.o\"", "a\"b\\c.o"},
        {"bpftrace:\"a\tb.bt\"", "a\tb.bt"},
        {"usdt:\"/opt/my app/x\":p:n,if=arg0==3", "/opt/my app/x:p:n"},
        {"func:\"/opt/my app/x\"!f>1ms,if=arg0==3", "/opt/my app/x!f"},
        {"func:\"/opt/my app/x!f\">worst", "/opt/my app/x!f"},
        {"quiet:\"my app!beat\">1s", "my app!beat"},
        {"call:a\\", "a\\"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        struct trg_spec spec;

        parse(taken[i].text, &spec);
        assert_string_equal(spec.options->name, taken[i].name);
        assert_true(spec.kind->hits || spec.worst || spec.threshold_ns);
        assert_int_equal(spec.options->filter.n, strstr(taken[i].text, ",if=") ? 1 : 0);
        trg_spec_free(&spec);
    }
}

static void test_too_long_path(void **state)
{
    struct st_error err = {0};
    struct trg_spec spec;
    char text[5000] = "bpftrace:/";

    (void)state;
    memset(text + 10, 'p', sizeof(text) - 11);
    assert_int_equal(trg_parse(text, &spec, &err), ST_EUSAGE);
    assert_non_null(strstr(err.text, "a name of 4990 characters: at most 4095"));
    assert_null(spec.text);
}

/* Text of every length, cut at each byte, is taken or refused with a message; nothing else happens. */
static void test_cut_at_every_byte(void **state)
{
    static const char whole[] = "offcpu>20.5ms,state=blocked+sleeping,preempted,idle=read+recvfrom";
    char part[sizeof(whole)];

    (void)state;
    for (size_t n = 0; n < sizeof(whole); n++) {
        struct st_error err = {0};
        struct trg_spec spec;

        snprintf(part, n + 1, "%s", whole);
        if (!trg_parse(part, &spec, &err))
            trg_spec_free(&spec);
        else
            assert_true(strlen(err.text) > 0 && !spec.text && !spec.options);
        assert_int_equal(trg_parse(part, &spec, NULL) == 0, err.text[0] == '\0');
        trg_spec_free(&spec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rejected),      cmocka_unit_test(test_thresholds),
        cmocka_unit_test(test_worst),         cmocka_unit_test(test_states),
        cmocka_unit_test(test_idle),          cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_long_paths),    cmocka_unit_test(test_quoted_names),
        cmocka_unit_test(test_too_long_path), cmocka_unit_test(test_cut_at_every_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
