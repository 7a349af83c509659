// moodycamel's blocking queue, which tries only once before it waits.
#include <atomic>
#include <thread>
#ifdef WEAK
#define memory_order_release memory_order_relaxed
#endif
#include <concurrentqueue/blockingconcurrentqueue.h>
#include <cassert>

struct Traits : moodycamel::ConcurrentQueueDefaultTraits {
    static const int MAX_SEMA_SPINS = 1;
};

int main() {
    static moodycamel::BlockingConcurrentQueue<int, Traits> queue(4);
    std::thread producer([] { queue.enqueue(1); });
    int value;
    queue.wait_dequeue(value);
    assert(value == 1);
    producer.join();
}
