// An exception that leaves a thread: only when the other thread was faster.
//
// Check:    selvedge verify examples/c/uncaught.cpp
// Expected: bug, an uncaught exception of type std::runtime_error
// Source:   folklore
#include <atomic>
#include <stdexcept>
#include <thread>

static std::atomic<bool> shut_down{false};

static void request()
{
    if (shut_down.load())
        throw std::runtime_error("the server has shut down");
}

int main()
{
    std::thread client(request);
    shut_down.store(true);
    client.join();
}
