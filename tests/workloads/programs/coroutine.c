/* Two coroutines by swapcontext, each on a stack of its own; main goes round between them. */
#include "tree.h"

#include <stddef.h>
#include <ucontext.h>

#define STACK_BYTES 65536

static ucontext_t main_context, first_context, second_context;
static char first_stack[STACK_BYTES], second_stack[STACK_BYTES];
static int rounds;

OWN void give_back(ucontext_t *own)
{
    swapcontext(own, &main_context);
    WORK();
}

OWN void first_step(void)
{
    WORK();
    give_back(&first_context);
}

OWN void first_entry(void)
{
    for (int i = 0; i < 3; i++)
        first_step();
}

OWN void second_deep(unsigned depth)
{
    if (depth)
        second_deep(depth - 1);
    else
        give_back(&second_context);
    WORK();
}

OWN void second_entry(void)
{
    second_deep(0);
    second_deep(2);
}

OWN void make_coroutine(ucontext_t *context, char *stack, void (*entry)(void))
{
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = STACK_BYTES;
    context->uc_link = &main_context;
    makecontext(context, entry, 0);
}

OWN void resume(ucontext_t *context)
{
    rounds++;
    swapcontext(&main_context, context);
    WORK();
}

/* first: three turns and one to its end; second: two turns and one to its end */
OWN void go_round(void)
{
    for (int i = 0; i < 4; i++) {
        resume(&first_context);
        if (i < 3)
            resume(&second_context);
    }
}

int main(void)
{
    OWN_STACK("first", first_stack, sizeof(first_stack));
    OWN_STACK("second", second_stack, sizeof(second_stack));
    make_coroutine(&first_context, first_stack, first_entry);
    make_coroutine(&second_context, second_stack, second_entry);
    go_round();
    return rounds == 7 ? 0 : 1;
}
