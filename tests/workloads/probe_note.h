/* A probe that is built into a program: st_test:beat, or PROBE_PROVIDER:PROBE_NAME, with two arguments,
 * `which` and 7. */
#ifndef WORKLOADS_PROBE_NOTE_H
#define WORKLOADS_PROBE_NOTE_H

#ifndef PROBE_PROVIDER
#define PROBE_PROVIDER "st_test"
#define PROBE_NAME     "beat"
#endif

/* A probe as systemtap's sys/sdt.h makes them: a note (owner "stapsdt", type 3) with the place of a nop, the
 * base, no semaphore, provider, name, and where the arguments are. */
static __attribute__((noinline)) void probe(long which)
{
    __asm__ volatile("990: nop\n"
                     ".pushsection .note.stapsdt,\"?\",\"note\"\n"
                     ".balign 4\n"
                     ".4byte 992f-991f, 994f-993f, 3\n"
                     "991: .asciz \"stapsdt\"\n"
                     "992: .balign 4\n"
                     "993: .8byte 990b\n"
                     ".8byte _.stapsdt.base\n"
                     ".8byte 0\n"
                     ".asciz \"" PROBE_PROVIDER "\"\n"
                     ".asciz \"" PROBE_NAME "\"\n"
                     ".asciz \"-8@%%rdi -4@$7\"\n"
                     "994: .balign 4\n"
                     ".popsection\n"
                     ".ifndef _.stapsdt.base\n"
                     ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
                     ".weak _.stapsdt.base\n"
                     ".hidden _.stapsdt.base\n"
                     "_.stapsdt.base: .space 1\n"
                     ".size _.stapsdt.base, 1\n"
                     ".popsection\n"
                     ".endif\n" ::"D"(which)
                     : "memory");
}

#endif
