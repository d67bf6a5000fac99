/* In the place of a fuzzing engine: runs the files that it is given through a target, once. */
#include "fuzz.h"

#include <stdio.h>

/* Targets that have none. */
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most)
{
    (void)most;
    if (size)
        data[size / 2] ^= 0x10;
    return size;
}

static int run(const char *path)
{
    static uint8_t bytes[1 << 20];
    FILE *f = fopen(path, "rbe");
    uint8_t *exact;
    size_t n;

    if (!f) {
        perror(path);
        return 1;
    }
    n = fread(bytes, 1, sizeof(bytes), f);
    fclose(f);
    exact = malloc(n ? n : 1); /* what is read behind its end is noticed */
    if (!exact)
        return 1;
    memcpy(exact, bytes, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;

    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++)
        failed |= run(argv[i]);
    fprintf(stderr, "%d inputs\n", argc - 1);
    return failed;
}
