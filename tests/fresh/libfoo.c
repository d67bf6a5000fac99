/* The library that the documents' examples name. */
void foo_lock(int a, int b)
{
    __asm__ volatile("" : : "r"(a), "r"(b) : "memory");
}

void foo_beat(int a)
{
    __asm__ volatile("" : : "r"(a) : "memory");
}
