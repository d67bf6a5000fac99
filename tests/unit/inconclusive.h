/* For tests that measure time. */
#ifndef ST_TEST_INCONCLUSIVE_H
#define ST_TEST_INCONCLUSIVE_H

/* Ends the test that runs: the machine did not let it decide. Prints "inconclusive: " and why; its program
 * ends with 77 if no other test of it fails. */
void test_inconclusive(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
