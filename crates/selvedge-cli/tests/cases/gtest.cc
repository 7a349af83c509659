// Two test cases, one of which fails under one schedule.
#include <gtest/gtest.h>
#include <atomic>
#include <thread>

static std::atomic<int> count;

TEST(Counter, Adds) {
    std::thread thread([] { count.fetch_add(1); });
    count.fetch_add(1);
    thread.join();
    EXPECT_EQ(count.load(), 2);
}

TEST(Counter, Loses) {
    std::thread thread([] { count.store(count.load() + 1); });
    count.store(count.load() + 1);
    thread.join();
    EXPECT_EQ(count.load(), 2);
}

TEST(Other, DISABLED_Fails) { EXPECT_EQ(count.load(), 1); }

TEST(Other, Skips) { GTEST_SKIP(); }

TEST(Other, Starts) { EXPECT_EQ(count.load(), 0); }
