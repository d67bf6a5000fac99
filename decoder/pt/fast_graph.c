/* Nodes and edges of code, and the code epochs they belong to. */
#include "decoder/pt/fast_graph.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    FIRST_SLOTS = 1 << 14,
    FIRST_SLOTS_LARGE = 1 << 19,
    LARGE = 1 << 22, /* bytes of trace, from which on large pages are worth what it costs to clear them */
};

void *fast_reserve(size_t size, bool large)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    if (large)
        madvise(at, size, MADV_HUGEPAGE); /* where refused, it is only slower */
    return at;
}

/* NULL: no memory. */
static struct fast_table *new_table(size_t n, struct fast_table *smaller, bool large)
{
    struct fast_table *table = malloc(sizeof(*table));
    if (!table)
        return NULL;
    *table = (struct fast_table){fast_reserve(n * sizeof(struct fast_slot), large), n, smaller};
    if (table->slots)
        return table;
    free(table);
    return NULL;
}

static void free_tables(struct fast_table *table)
{
    while (table) {
        struct fast_table *smaller = table->smaller;
        munmap(table->slots, table->n * sizeof(*table->slots));
        free(table);
        table = smaller;
    }
}

int fast_graph_new(struct fast_graph *graph, size_t bytes, struct st_error *err)
{
    memset(graph, 0, sizeof(*graph));
    graph->large = bytes >= LARGE;
    graph->info = fast_reserve(FAST_NODES * sizeof(*graph->info), graph->large);
    graph->succ = fast_reserve(FAST_NODES * sizeof(*graph->succ), graph->large);
    graph->epochs = fast_reserve(FAST_EPOCHS * sizeof(*graph->epochs), false);
    graph->epoch_slots = fast_reserve(FAST_EPOCH_SLOTS * sizeof(*graph->epoch_slots), false);
    graph->n = 1;
    graph->table = new_table(graph->large ? FIRST_SLOTS_LARGE : FIRST_SLOTS, NULL, graph->large);
    pthread_mutex_init(&graph->lock, NULL);
    if (graph->info && graph->succ && graph->epochs && graph->epoch_slots && graph->table &&
        code_new(&graph->code, err) == 0)
        return 0;
    fast_graph_free(graph);
    return st_nomem(err, "the graph of code");
}

void fast_graph_free(struct fast_graph *graph)
{
    if (graph->info)
        munmap(graph->info, FAST_NODES * sizeof(*graph->info));
    if (graph->succ)
        munmap(graph->succ, FAST_NODES * sizeof(*graph->succ));
    if (graph->epochs)
        munmap(graph->epochs, FAST_EPOCHS * sizeof(*graph->epochs));
    if (graph->epoch_slots)
        munmap(graph->epoch_slots, FAST_EPOCH_SLOTS * sizeof(*graph->epoch_slots));
    free_tables(graph->table);
    code_free(graph->code);
    pthread_mutex_destroy(&graph->lock);
    memset(graph, 0, sizeof(*graph));
}

uint32_t fast_graph_count(struct fast_graph *graph)
{
    pthread_mutex_lock(&graph->lock);
    uint32_t n = graph->n;
    pthread_mutex_unlock(&graph->lock);
    return n;
}

static bool is_epoch(const struct code_epoch *a, const struct code_epoch *b)
{
    return a->space == b->space && a->until == b->until && a->mode == b->mode;
}

/* Where a code epoch is, or would be. */
static uint32_t *epoch_slot(const struct fast_graph *graph, const struct code_epoch *epoch)
{
    uint64_t h = ((uintptr_t)epoch->space >> 4) * 0x9e3779b97f4a7c15u ^ (epoch->until * 4 + epoch->mode);
    h *= 0xff51afd7ed558ccdu;
    size_t i = (size_t)(h ^ h >> 32) & (FAST_EPOCH_SLOTS - 1);
    while (graph->epoch_slots[i] && !is_epoch(&graph->epochs[graph->epoch_slots[i] - 1], epoch))
        i = (i + 1) & (FAST_EPOCH_SLOTS - 1);
    return &graph->epoch_slots[i];
}

int fast_graph_epoch(struct fast_graph *graph, const struct dec_space *space, uint64_t time,
                     enum code_mode mode)
{
    struct code_epoch epoch = {.space = space, .until = UINT64_MAX, .mode = mode};
    if (space)
        epoch.until = dec_space_stable(space, time);
    pthread_mutex_lock(&graph->lock);
    uint32_t *slot = epoch_slot(graph, &epoch);
    if (!*slot && graph->nepochs < FAST_EPOCHS) {
        graph->epochs[graph->nepochs] = epoch;
        *slot = ++graph->nepochs;
    }
    int found = (int)*slot - 1;
    pthread_mutex_unlock(&graph->lock);
    return found;
}

static uint64_t mask(enum code_mode mode, uint64_t ip)
{
    return mode == CODE_64 ? ip : mode == CODE_32 ? ip & 0xffffffffu : ip & 0xffffu;
}

static enum code_mode mode_of(const struct fast_graph *graph, const struct fast_node_info *info)
{
    return graph->epochs[info->epoch].mode;
}

uint64_t fast_from(const struct fast_graph *graph, const struct fast_node_info *info)
{
    return mask(mode_of(graph, info), info->start + info->run.bytes);
}

uint64_t fast_next(const struct fast_graph *graph, const struct fast_node_info *info)
{
    return mask(mode_of(graph, info), fast_from(graph, info) + info->run.length);
}

uint64_t fast_target(const struct fast_graph *graph, const struct fast_node_info *info)
{
    return mask(mode_of(graph, info), fast_next(graph, info) + (uint64_t)(int64_t)info->run.displacement);
}

static size_t hash(uint32_t epoch, uint64_t ip)
{
    /* Code epochs have the same addresses: each must change the low bits. */
    uint64_t h = (ip ^ epoch * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u;
    return (size_t)(h ^ h >> 29);
}

/* Where a node is, or would be. *node: its number, or 0. */
static struct fast_slot *slot_of(const struct fast_table *table, uint32_t epoch, uint64_t ip, uint32_t *node)
{
    for (size_t i = hash(epoch, ip);; i++) {
        struct fast_slot *slot = &table->slots[i & (table->n - 1)];
        *node = atomic_load_explicit(&slot->node, memory_order_acquire);
        if (!*node || (slot->start == ip && slot->epoch == epoch))
            return slot;
    }
}

static void put_slot(const struct fast_table *table, uint32_t epoch, uint64_t ip, uint32_t node)
{
    uint32_t none;
    struct fast_slot *slot = slot_of(table, epoch, ip, &none);
    slot->start = ip;
    slot->epoch = epoch;
    atomic_store_explicit(&slot->node, node, memory_order_release);
}

static int grow(struct fast_graph *graph)
{
    struct fast_table *old = graph->table, *table = new_table(2 * old->n, old, graph->large);
    if (!table)
        return -1;
    for (size_t i = 0; i < old->n; i++) {
        const struct fast_slot *slot = &old->slots[i];
        uint32_t node = atomic_load_explicit(&slot->node, memory_order_relaxed);
        if (node)
            put_slot(table, slot->epoch, slot->start, node);
    }
    graph->table = table;
    return 0;
}

static enum fast_kind kind_of(const struct code_run *run)
{
    switch (run->end) {
    case CODE_COND_JUMP:
        return FAST_COND;
    case CODE_RETURN:
        return FAST_RETURN;
    case CODE_CALL:
        return !run->direct ? FAST_TIP_CALL : run->displacement ? FAST_CALL : FAST_JUMP;
    case CODE_JUMP:
        return run->direct ? FAST_JUMP : FAST_TIP;
    case CODE_FAR_CALL:
    case CODE_FAR_RETURN:
    case CODE_FAR_JUMP:
    case CODE_BAD:
    case CODE_NONE:
        return FAST_TIP;
    default:
        return FAST_PASS;
    }
}

static fast_edge edge_to(const struct fast_graph *graph, uint32_t node)
{
    return node << FAST_SHIFT | (uint32_t)kind_of(&graph->info[node].run);
}

static fast_edge add(struct fast_graph *graph, uint32_t epoch, uint64_t time, uint64_t ip)
{
    const struct code_epoch *w = &graph->epochs[epoch];
    uint32_t node = graph->n;
    struct fast_node_info *info = &graph->info[node];
    const struct fast_table *table = graph->table;
    if (node == FAST_NODES || (node * (size_t)2 > table->n && grow(graph)))
        return FAST_NO_EDGE;
    if (!w->space || code_decode(graph->code, w->space, time, ip, w->mode, &info->run))
        info->run = (struct code_run){.end = CODE_NONE};
    info->start = ip;
    info->epoch = epoch;
    graph->n++;
    put_slot(graph->table, epoch, ip, node);
    return edge_to(graph, node);
}

fast_edge fast_graph_at(struct fast_graph *graph, uint32_t epoch, uint64_t time, uint64_t ip)
{
    uint32_t node;
    slot_of(atomic_load_explicit(&graph->table, memory_order_acquire), epoch, ip, &node);
    if (node)
        return edge_to(graph, node);
    pthread_mutex_lock(&graph->lock);
    slot_of(graph->table, epoch, ip, &node);
    fast_edge edge = node ? edge_to(graph, node) : add(graph, epoch, time, ip);
    pthread_mutex_unlock(&graph->lock);
    return edge;
}

fast_edge fast_graph_open(struct fast_graph *graph, uint32_t node, unsigned side, uint64_t time)
{
    fast_edge edge = fast_graph_succ(graph, node, side);
    if (edge)
        return edge;
    const struct fast_node_info *info = &graph->info[node];
    uint64_t ip = side == FAST_TAKEN ? fast_target(graph, info) : fast_next(graph, info);
    edge = fast_graph_at(graph, info->epoch, time, ip);
    if (edge != FAST_NO_EDGE)
        atomic_store_explicit(&graph->succ[node].to[side], edge, memory_order_release);
    return edge;
}

bool fast_graph_reaches(struct fast_graph *graph, const struct fast_node_info *info, uint64_t time,
                        uint64_t stop, uint32_t *count)
{
    const struct code_epoch *epoch = &graph->epochs[info->epoch];
    *count = info->run.count;
    pthread_mutex_lock(&graph->lock);
    bool reached = code_reaches(graph->code, epoch->space, time, info->start, epoch->mode, stop, count);
    pthread_mutex_unlock(&graph->lock);
    return reached;
}

uint64_t fast_edge_ip(const struct fast_graph *graph, fast_edge edge)
{
    uint32_t rest = edge >> FAST_SHIFT;
    if ((edge & 7) != FAST_OPEN)
        return graph->info[rest].start;
    const struct fast_node_info *info = &graph->info[rest >> 1];
    return rest & 1 ? fast_target(graph, info) : fast_next(graph, info);
}
