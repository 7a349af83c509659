// Boost.Lockfree's queue for any number of threads.
#include <atomic>
#include <thread>
#ifdef WEAK
#define memory_order_release memory_order_relaxed
#define memory_order_acquire memory_order_relaxed
#endif
#include <boost/lockfree/queue.hpp>
#include <cassert>

static boost::lockfree::queue<int, boost::lockfree::capacity<2>> queue;

int main() {
    std::thread producer([] { queue.push(1); });
    int value;
    bool got = queue.pop(value);
    producer.join();
    if (!got) {
        got = queue.pop(value);
    }
    assert(got && value == 1);
}
