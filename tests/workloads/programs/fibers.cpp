// Fibers of Boost.Context: to and fro with main, from one fiber to another, one that is destroyed before its
// end (which unwinds its stack by an exception).
#include "tree.h"

#include <boost/context/fiber.hpp>

#include <utility>

namespace fibers
{

using boost::context::fiber;
using boost::context::stack_context;

constexpr std::size_t STACK_BYTES = 65536;

// One stack that is always there.
struct Stack {
    char *bytes;

    OWN stack_context allocate()
    {
        stack_context context;
        WORK();
        context.size = STACK_BYTES;
        context.sp = bytes + STACK_BYTES;
        return context;
    }

    OWN void deallocate(stack_context &)
    {
        WORK();
    }
};

char producer_stack[STACK_BYTES], consumer_stack[STACK_BYTES], endless_stack[STACK_BYTES];
fiber producer, consumer, back;
unsigned produced, consumed, cleaned;

OWN void made()
{
    produced++;
}

// Gives the turn to the consumer from two frames down.
OWN void hand_over(unsigned depth)
{
    if (depth)
        hand_over(depth - 1);
    else
        consumer = std::move(consumer).resume();
    WORK();
}

OWN void produce()
{
    made();
    hand_over(2);
}

OWN fiber run_producer(fiber &&from)
{
    back = std::move(from);
    for (int i = 0; i < 3; i++)
        produce();
    return std::move(back);
}

OWN void used()
{
    consumed++;
}

OWN void take(fiber &from)
{
    used();
    from = std::move(from).resume();
    WORK();
}

OWN fiber run_consumer(fiber &&from)
{
    fiber giver = std::move(from);
    for (int i = 0; i < 3; i++)
        take(giver);
    return giver;
}

OWN void released()
{
    cleaned++;
}

struct Guard {
    OWN ~Guard()
    {
        released();
    }
};

OWN void wait_for_ever(fiber &from)
{
    Guard guard;
    for (;;)
        from = std::move(from).resume();
}

OWN fiber run_endless(fiber &&from)
{
    Guard guard;
    fiber giver = std::move(from);
    wait_for_ever(giver);
    return giver;
}

OWN void pass()
{
    WORK();
}

OWN void together()
{
    consumer = fiber(std::allocator_arg, Stack{consumer_stack}, run_consumer);
    producer = fiber(std::allocator_arg, Stack{producer_stack}, run_producer);
    producer = std::move(producer).resume();
    pass();
}

OWN void destroyed()
{
    fiber endless(std::allocator_arg, Stack{endless_stack}, run_endless);
    endless = std::move(endless).resume();
    pass();
    endless = std::move(endless).resume();
    pass();
}

} // namespace fibers

int main()
{
    using namespace fibers;
    OWN_STACK("producer", producer_stack, STACK_BYTES);
    OWN_STACK("consumer", consumer_stack, STACK_BYTES);
    OWN_STACK("endless", endless_stack, STACK_BYTES);
    together();
    destroyed();
    pass();
    return produced == 3 && consumed == 3 && cleaned == 2 ? 0 : 1;
}
