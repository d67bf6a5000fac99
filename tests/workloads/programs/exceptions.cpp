// Exceptions: through three frames with something to clean up, rethrown, and a try that nothing throws in.
#include "tree.h"

namespace frames
{

OWN void released()
{
    WORK();
}

// Its destructor runs while the stack unwinds.
struct Guard {
    OWN ~Guard()
    {
        released();
    }
};

OWN void thrower(int value)
{
    WORK();
    if (value)
        throw value;
}

OWN void inner(int value)
{
    Guard guard;
    thrower(value);
    WORK();
}

OWN void middle(int value)
{
    inner(value);
    WORK();
}

OWN void outer(int value)
{
    Guard guard;
    middle(value);
    WORK();
}

OWN void caught()
{
    WORK();
}

OWN int catcher(int value)
{
    try {
        outer(value);
    } catch (int thrown) {
        caught();
        return thrown;
    }
    return 0;
}

OWN void rethrower(int value)
{
    try {
        thrower(value);
    } catch (...) {
        caught();
        throw;
    }
}

OWN int catch_rethrown(int value)
{
    try {
        rethrower(value);
    } catch (int thrown) {
        caught();
        return thrown;
    }
    return 0;
}

} // namespace frames

int main()
{
    int sum = frames::catcher(1);

    sum += frames::catcher(0);
    sum += frames::catch_rethrown(2);
    return sum == 3 ? 0 : 1;
}
