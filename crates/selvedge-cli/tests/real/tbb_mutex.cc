// oneTBB's mutexes: LOCK is spin_mutex, spin_rw_mutex or queuing_mutex.
#include <atomic>
#include <thread>
#ifdef WEAK
#define memory_order_release memory_order_relaxed
#endif
#include <oneapi/tbb/queuing_mutex.h>
#include <oneapi/tbb/spin_mutex.h>
#ifdef WEAK
// The exchange of spin_rw_mutex names no order, so it is seq_cst.
#define compare_exchange_strong(expected, desired) compare_exchange_strong(expected, desired, std::memory_order_relaxed)
#endif
#include <oneapi/tbb/spin_rw_mutex.h>
#include <cassert>

static tbb::LOCK mutex;
static int count;

static void work() {
    tbb::LOCK::scoped_lock lock(mutex);
    count++;
}

int main() {
    std::thread thread(work);
    work();
    thread.join();
    assert(count == 2);
}
