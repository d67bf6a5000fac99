/* Nodes and edges of code, and the worlds they belong to. */
#include "decoder/fast_graph.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FIRST_SLOTS = 1 << 14 };

/* Address space without memory behind it until it is used. */
static void *reserve(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

int fast_graph_new(struct fast_graph *graph, struct st_error *err)
{
    memset(graph, 0, sizeof(*graph));
    graph->nodes = reserve(FAST_NODES * sizeof(*graph->nodes));
    graph->about = reserve(FAST_NODES * sizeof(*graph->about));
    graph->nslots = FIRST_SLOTS;
    graph->slots = calloc(graph->nslots, sizeof(*graph->slots));
    if (graph->nodes && graph->about && graph->slots && code_new(&graph->code, err) == 0)
        return 0;
    fast_graph_free(graph);
    return st_nomem(err, "the graph of code");
}

void fast_graph_free(struct fast_graph *graph)
{
    if (graph->nodes)
        munmap(graph->nodes, FAST_NODES * sizeof(*graph->nodes));
    if (graph->about)
        munmap(graph->about, FAST_NODES * sizeof(*graph->about));
    free(graph->slots);
    st_vec_free(&graph->worlds);
    code_free(graph->code);
    memset(graph, 0, sizeof(*graph));
}

int fast_graph_world(struct fast_graph *graph, const struct dec_space *space, uint64_t time,
                     enum code_mode mode)
{
    struct fast_world world = {.space = space, .until = dec_space_stable(space, time), .mode = mode};
    for (size_t i = graph->worlds.n; i > 0; i--) {
        const struct fast_world *other = &graph->worlds.at[i - 1];
        if (other->space == space && other->until == world.until && other->mode == mode)
            return (int)(i - 1);
    }
    return st_vec_push(&graph->worlds, world) ? -1 : (int)(graph->worlds.n - 1);
}

static uint64_t mask(enum code_mode mode, uint64_t ip)
{
    return mode == CODE_64 ? ip : mode == CODE_32 ? ip & 0xffffffffu : ip & 0xffffu;
}

static enum code_mode mode_of(const struct fast_graph *graph, const struct fast_about *about)
{
    return graph->worlds.at[about->world].mode;
}

uint64_t fast_from(const struct fast_graph *graph, const struct fast_about *about)
{
    return mask(mode_of(graph, about), about->start + about->run.bytes);
}

uint64_t fast_next(const struct fast_graph *graph, const struct fast_about *about)
{
    return mask(mode_of(graph, about), fast_from(graph, about) + about->run.length);
}

uint64_t fast_target(const struct fast_graph *graph, const struct fast_about *about)
{
    return mask(mode_of(graph, about), fast_next(graph, about) + (uint64_t)(int64_t)about->run.displacement);
}

static size_t hash(uint32_t world, uint64_t ip)
{
    uint64_t h = (ip ^ (uint64_t)world << 48) * 0x9e3779b97f4a7c15u;
    return (size_t)(h ^ h >> 29);
}

static size_t slot_of(const struct fast_graph *graph, uint32_t world, uint64_t ip)
{
    size_t i = hash(world, ip) & (graph->nslots - 1);
    while (graph->slots[i]) {
        const struct fast_about *about = &graph->about[graph->slots[i] - 1];
        if (about->start == ip && about->world == world)
            break;
        i = (i + 1) & (graph->nslots - 1);
    }
    return i;
}

static int grow(struct fast_graph *graph)
{
    uint32_t *old = graph->slots;
    uint32_t *slots = calloc(graph->nslots * 2, sizeof(*slots));
    if (!slots)
        return -1;
    graph->slots = slots;
    graph->nslots *= 2;
    for (uint32_t i = 0; i < graph->n; i++)
        slots[slot_of(graph, graph->about[i].world, graph->about[i].start)] = i + 1;
    free(old);
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
        return FAST_TIP;
    default:
        return FAST_PASS;
    }
}

static fast_edge edge_to(const struct fast_graph *graph, uint32_t node)
{
    return node << FAST_SHIFT | (uint32_t)kind_of(&graph->about[node].run);
}

static fast_edge add(struct fast_graph *graph, uint32_t world, uint64_t time, uint64_t ip, size_t slot)
{
    const struct fast_world *w = &graph->worlds.at[world];
    const struct dec_mapping *mapping = dec_space_find(w->space, time, ip);
    uint32_t node = graph->n;
    struct fast_about *about = &graph->about[node];
    if (!mapping || node == FAST_NODES)
        return FAST_NO_EDGE;
    if (code_at(graph->code, w->space, time, mapping, ip, w->mode, &about->run) || about->run.end == CODE_BAD)
        return FAST_NO_EDGE;
    about->start = ip;
    about->world = world;
    for (unsigned side = FAST_FALL; side <= FAST_TAKEN; side++)
        graph->nodes[node].to[side] = (node << 1 | side) << FAST_SHIFT | FAST_OPEN;
    enum fast_kind kind = kind_of(&about->run);
    if (kind == FAST_RETURN || kind == FAST_TIP)
        graph->nodes[node].to[FAST_FALL] = (uint32_t)fast_next(graph, about);
    graph->slots[slot] = ++graph->n;
    if (graph->n * (size_t)2 > graph->nslots && grow(graph)) {
        graph->n--;
        graph->slots[slot] = 0;
        return FAST_NO_EDGE;
    }
    return edge_to(graph, node);
}

fast_edge fast_graph_at(struct fast_graph *graph, uint32_t world, uint64_t time, uint64_t ip)
{
    size_t slot = slot_of(graph, world, ip);
    if (graph->slots[slot])
        return edge_to(graph, graph->slots[slot] - 1);
    return add(graph, world, time, ip, slot);
}

uint64_t fast_edge_ip(const struct fast_graph *graph, fast_edge edge)
{
    uint32_t rest = edge >> FAST_SHIFT;
    if ((edge & 7) != FAST_OPEN)
        return graph->about[rest].start;
    const struct fast_about *about = &graph->about[rest >> 1];
    return rest & 1 ? fast_target(graph, about) : fast_next(graph, about);
}

fast_edge fast_graph_open(struct fast_graph *graph, fast_edge edge, uint64_t time)
{
    uint32_t rest = edge >> FAST_SHIFT;
    fast_edge found = fast_graph_at(graph, graph->about[rest >> 1].world, time, fast_edge_ip(graph, edge));
    if (found != FAST_NO_EDGE)
        graph->nodes[rest >> 1].to[rest & 1] = found;
    return found;
}
