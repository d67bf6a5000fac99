/* Edit distance (optimal string alignment). */
#include "base/nearest.h"

#include <ctype.h>
#include <string.h>

enum { LONGEST = 63 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int distance(const char *a, size_t na, const char *b, size_t nb)
{
    int rows[3][LONGEST + 2];
    int *two = rows[0], *one = rows[1], *now = rows[2];

    for (size_t j = 0; j <= nb; j++)
        one[j] = two[j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        int *oldest = two;

        now[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            int ca = tolower((unsigned char)a[i - 1]), cb = tolower((unsigned char)b[j - 1]);

            now[j] = least(least(one[j] + 1, now[j - 1] + 1), one[j - 1] + (ca != cb));
            if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
                cb == tolower((unsigned char)a[i - 2]))
                now[j] = least(now[j], two[j - 2] + 1);
        }
        two = one;
        one = now;
        now = oldest;
    }
    return one[nb];
}

const char *st_nearest(const char *text, size_t len, const char *const *words, size_t n)
{
    const char *best = NULL;
    int allowed = len < 6 ? 1 + (len > 2) : 3;

    if (len == 0 || len > LONGEST)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t wlen = strlen(words[i]);
        int d;

        if (wlen > LONGEST)
            continue;
        d = distance(text, len, words[i], wlen);
        if (d <= allowed) {
            best = words[i];
            allowed = d - 1;
        }
    }
    return best;
}
