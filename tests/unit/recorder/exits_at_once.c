/* A program that tests exec: without a C library and its dynamic linker, whose 100,000 instructions take a
 * while to step. */
void _start(void);
void _start(void)
{
    for (volatile int i = 0; i < 20; i++)
        ;
    __asm__ volatile("syscall" ::"a"(60), "D"(0)); /* exit */
    __builtin_unreachable();
}
