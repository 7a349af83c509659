// moodycamel's queue.
#include <atomic>
#include <thread>
#ifdef WEAK
#define memory_order_release memory_order_relaxed
#endif
#include <concurrentqueue/concurrentqueue.h>
#include <cassert>

int main() {
    static moodycamel::ConcurrentQueue<int> queue(4);
    std::thread producer([] { queue.enqueue(1); });
    int value;
    bool got = queue.try_dequeue(value);
    producer.join();
    if (!got) {
        got = queue.try_dequeue(value);
    }
    assert(got && value == 1);
}
