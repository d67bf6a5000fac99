/* Call chains that end in the middle. */
#include "decoder/model/samples/samples.h"

/* The innermost one is left out: that it called anything is not known. */
static size_t common(const dec_sample_frames *f, const struct dec_chain *a, const struct dec_chain *b)
{
    const struct dec_sample_frame *x = f->at + a->first, *y = f->at + b->first;
    size_t nx = dec_chain_users(f->at, a), ny = dec_chain_users(f->at, b), k = 0;

    while (k + 1 < nx && k + 1 < ny && x[k].symbol == y[k].symbol &&
           (!k || dec_same_site(&x[k - 1], &y[k - 1])))
        k++;
    return k;
}

static int prepend(dec_sample_frames *f, struct dec_chain *chain, const struct dec_chain *like, size_t n)
{
    size_t first = f->n;

    if (st_vec_reserve(f, n + chain->n))
        return -1;
    for (size_t k = 0; k < n; k++)
        f->at[f->n++] = f->at[like->first + k];
    f->at[f->n - 1].site = 0;
    for (size_t k = 0; k < chain->n; k++)
        f->at[f->n++] = f->at[chain->first + k];
    chain->first = (uint32_t)first;
    chain->n += (uint32_t)n;
    chain->outer += (uint32_t)n;
    return 0;
}

int dec_samples_mend(dec_sample_frames *frames, struct dec_chain *chains, size_t n)
{
    const struct dec_chain *before = NULL;
    size_t i = 0;

    while (i < n) {
        size_t end = i, shared;

        while (end < n && chains[end].broken)
            end++;
        shared = before && end < n ? common(frames, before, &chains[end]) : 0;
        for (; i < end; i++)
            if (shared && prepend(frames, &chains[i], before, shared))
                return -1;
        if (end < n)
            before = &chains[end];
        i = end + 1;
    }
    return 0;
}
