// Two ways to make something once: std::call_once and a function's static variable.
//
// Check:    selvedge verify examples/c/singleton.cpp
// Expected: verified
// Source:   S. Meyers, "More Effective C++", item 26, 1996; thread-safe since C++11
#include <cassert>
#include <memory>
#include <mutex>
#include <thread>

static int registries, loggers;

struct Registry {
    Registry() { registries++; }
    int entries = 7;
};

static Registry &registry()
{
    static Registry instance;
    return instance;
}

static std::once_flag logger_flag;
static std::unique_ptr<int> logger;

static int &get_logger()
{
    std::call_once(logger_flag, [] {
        loggers++;
        logger = std::make_unique<int>(42);
    });
    return *logger;
}

static void use()
{
    assert(registry().entries == 7);
    assert(get_logger() == 42);
}

int main()
{
    std::thread first(use), second(use);
    first.join();
    second.join();
    assert(registries == 1 && loggers == 1);
}
