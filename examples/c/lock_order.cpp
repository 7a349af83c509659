// Two threads that lock two mutexes in opposite orders.
//
// Check:    selvedge verify examples/c/lock_order.cpp
// Expected: bug, a deadlock: each holds the mutex that the other one waits for
// Source:   folklore
#include <mutex>
#include <thread>

static std::mutex first, second;
static int moves;

static void move(std::mutex &from, std::mutex &to)
{
    std::lock_guard<std::mutex> hold_from(from);
    std::lock_guard<std::mutex> hold_to(to);
    moves++;
}

int main()
{
    std::thread forth([] { move(first, second); });
    std::thread back([] { move(second, first); });
    forth.join();
    back.join();
    return moves == 2 ? 0 : 1;
}
