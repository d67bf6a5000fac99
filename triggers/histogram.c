/* Log2 histograms with linear steps in each power of two. */
#include "triggers/histogram.h"
#include "base/units.h"

#include <string.h>

#define BAR 34

void trg_hist_add(struct hist *sum, const struct hist *one)
{
    for (size_t i = 0; i < HIST_BUCKETS; i++)
        sum->bucket[i] += one->bucket[i];
    sum->sum += one->sum;
    if (one->worst > sum->worst)
        sum->worst = one->worst;
}

uint64_t trg_hist_count(const struct hist *h)
{
    uint64_t n = 0;

    for (size_t i = 0; i < HIST_BUCKETS; i++)
        n += h->bucket[i];
    return n;
}

/* The first value that is above bucket i. */
static uint64_t upper_edge(size_t i)
{
    size_t power = i / HIST_STEPS, step = i % HIST_STEPS + 1;

    if (i + 1 == HIST_BUCKETS)
        return UINT64_MAX;
    if (power >= 3)
        return (HIST_STEPS + step) << (power - 3);
    return ((HIST_STEPS + step) >> (3 - power)) + (((HIST_STEPS + step) & ((1u << (3 - power)) - 1)) != 0);
}

uint64_t trg_hist_percentile(const struct hist *h, double share)
{
    uint64_t total = trg_hist_count(h), below = 0;
    double wanted = (double)total * share;

    for (size_t i = 0; total && i < HIST_BUCKETS; i++) {
        below += h->bucket[i];
        if (h->bucket[i] && (double)below >= wanted)
            return upper_edge(i) < h->worst ? upper_edge(i) : h->worst;
    }
    return total ? h->worst : 0;
}

static void print_bar(FILE *to, size_t power, uint64_t n, uint64_t most)
{
    static const char full[BAR + 1] = "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@";
    char low[24], high[24], count[32];
    int width = most ? (int)((double)n / (double)most * BAR) : 0;

    if (n && !width)
        width = 1;
    st_format_duration(power ? (int64_t)(1ull << power) : 0, low, sizeof(low));
    st_format_duration((int64_t)(2ull << power), high, sizeof(high));
    fprintf(to, "  %8s .. %8s %12s |%-*.*s|\n", low, high, st_format_count(n, count, sizeof(count)), BAR,
            width, full);
}

static void print_bars(FILE *to, const uint64_t *power)
{
    size_t first = 0, last = 62;
    uint64_t most = 0;

    while (first < 62 && !power[first])
        first++;
    while (last > first && !power[last])
        last--;
    for (size_t i = first; i <= last; i++)
        if (power[i] > most)
            most = power[i];
    for (size_t i = first; i <= last; i++)
        print_bar(to, i, power[i], most);
}

void trg_hist_powers(const struct hist *h, uint64_t n[64])
{
    memset(n, 0, 64 * sizeof(*n));
    for (size_t i = 0; i < HIST_BUCKETS; i++)
        n[i / HIST_STEPS] += h->bucket[i];
}

void trg_hist_print(const struct hist *h, const char *what, FILE *to)
{
    uint64_t total = trg_hist_count(h), power[64];
    char p50[24], p99[24], p999[24], worst[24], count[32];

    fprintf(to, "%s: %s measured\n", what, st_format_count(total, count, sizeof(count)));
    if (!total)
        return;
    trg_hist_powers(h, power);
    print_bars(to, power);
    st_format_duration((int64_t)trg_hist_percentile(h, 0.5), p50, sizeof(p50));
    st_format_duration((int64_t)trg_hist_percentile(h, 0.99), p99, sizeof(p99));
    st_format_duration((int64_t)trg_hist_percentile(h, 0.999), p999, sizeof(p999));
    st_format_duration((int64_t)h->worst, worst, sizeof(worst));
    fprintf(to, "  p50 %s   p99 %s   p99.9 %s   worst %s\n", p50, p99, p999, worst);
}
