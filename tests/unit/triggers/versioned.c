/* A library whose function has a version: its name in the symbol table is st_test_versioned@@ST_1. */
int st_test_versioned_1(void);
__asm__(".symver st_test_versioned_1, st_test_versioned@@ST_1");

int st_test_versioned_1(void)
{
    return 1;
}
