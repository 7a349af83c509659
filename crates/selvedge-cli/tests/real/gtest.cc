// GoogleTest with threads.
#include <gtest/gtest.h>
#include <atomic>
#include <cassert>
#include <thread>

TEST(Counter, Increments) {
    std::atomic<int> count{0};
    auto increment = [&] {
#ifdef WEAK
        count.store(count.load() + 1);
#else
        count.fetch_add(1);
#endif
    };
    std::thread thread(increment);
    increment();
    thread.join();
    EXPECT_EQ(count.load(), 2);
}

int main(int count, char **arguments) {
    testing::InitGoogleTest(&count, arguments);
    int failed = RUN_ALL_TESTS();
    assert(!failed);
}
