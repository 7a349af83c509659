// moodycamel's queue for one producer and one consumer; with BLOCKING the one that waits for a value.
#include <atomic>
#include <thread>
#ifdef WEAK
// The fences of the queue, and the counter of the semaphore.
#define atomic_thread_fence(order) atomic_thread_fence(std::memory_order_relaxed)
#define fetch_add(value, order) fetch_add(value, std::memory_order_relaxed)
#endif
#include <readerwriterqueue/readerwriterqueue.h>
#include <cassert>

int main() {
#ifdef BLOCKING
    // Its semaphore looks 1,024 times before it waits, so this is about one value.
    const int values = 1;
    static moodycamel::BlockingReaderWriterQueue<int> queue(values);
#else
    const int values = 2;
    static moodycamel::ReaderWriterQueue<int> queue(values);
#endif
    std::thread producer([] {
        for (int i = 1; i <= values; i++) {
            queue.enqueue(i);
        }
    });
    int value = 0, last = 0;
    for (int i = 0; i < values; i++) {
#ifdef BLOCKING
        queue.wait_dequeue(value);
#else
        if (!queue.try_dequeue(value)) {
            continue;
        }
#endif
        assert(value == last + 1);
        last = value;
    }
    producer.join();
}
