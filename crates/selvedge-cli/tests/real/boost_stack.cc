// Boost.Lockfree's stack: one thread pushes, one pops.
#include <atomic>
#include <thread>
#ifdef WEAK
// The stack's exchanges name no order, so they are seq_cst.
#define compare_exchange_weak(expected, desired) compare_exchange_weak(expected, desired, std::memory_order_relaxed)
#endif
#include <boost/lockfree/stack.hpp>
#include <cassert>

#ifdef POOL
static boost::lockfree::stack<int, boost::lockfree::capacity<2>> stack;
#else
static boost::lockfree::stack<int> stack(2);
#endif

int main() {
    std::thread producer([] { stack.push(1); });
#ifdef POOL
    stack.push(2);
#endif
    int value = 1;
    bool got = stack.pop(value);
    producer.join();
    if (!got) {
        got = stack.pop(value);
    }
    assert(got);
}
