// A promise is kept by one thread and awaited by another; a second result comes from std::async.
//
// The waiting thread finds the promise kept when it looks, or when it announces that it will sleep,
// or sleeps: 3 executions. The result of std::async adds none, since its thread is joined first.
//
// Check:    selvedge verify examples/c/future.cpp
// Expected: verified
// Source:   H. G. Baker, C. Hewitt, "The Incremental Garbage Collection of Processes", 1977, for
//           the name; std::future is C++11
#include <cassert>
#include <future>
#include <thread>

static int twice(int n)
{
    return 2 * n;
}

int main()
{
    std::promise<int> promise;
    std::future<int> kept = promise.get_future();
    std::thread keeper([&promise] { promise.set_value(20); });
    std::future<int> computed = std::async(std::launch::async, twice, 11);
    assert(kept.get() + computed.get() == 42);
    keeper.join();
}
