// Boost.Lockfree's queue for one producer and one consumer.
#include <atomic>
#ifdef WEAK
#include <thread>
#define memory_order_release memory_order_relaxed
#endif
#include <boost/lockfree/spsc_queue.hpp>
#include <cassert>
#include <thread>

static boost::lockfree::spsc_queue<int, boost::lockfree::capacity<2>> queue;

int main() {
    std::thread producer([] {
        queue.push(1);
        queue.push(2);
    });
    int value, last = 0;
    for (int i = 0; i < 2; i++) {
        if (queue.pop(value)) {
            assert(value == last + 1);
            last = value;
        }
    }
    producer.join();
}
