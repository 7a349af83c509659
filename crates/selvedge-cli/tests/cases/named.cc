// Two test cases of Catch2 or doctest, one of which fails under one schedule.
#ifdef DOCTEST
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#else
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
#include <atomic>
#include <thread>

static std::atomic<int> count;

TEST_CASE("adds, twice") {
    std::thread thread([] { count.fetch_add(1); });
    count.fetch_add(1);
    thread.join();
    CHECK(count.load() == 2);
}

TEST_CASE("loses") {
    std::thread thread([] { count.store(count.load() + 1); });
    count.store(count.load() + 1);
    thread.join();
    CHECK(count.load() == 2);
}
