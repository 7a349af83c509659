// One std::shared_ptr object, copied by one thread while another one resets it.
//
// The count inside is atomic, the pointer object itself is not.
//
// Check:    selvedge verify examples/c/shared_ptr_race.cpp
// Expected: bug, a data race on the pointer
// Source:   folklore; the remedy is std::atomic<std::shared_ptr>, C++20
#include <memory>
#include <thread>

static std::shared_ptr<int> shared = std::make_shared<int>(42);

int main()
{
    std::thread copier([] { std::shared_ptr<int> mine = shared; });
    std::thread resetter([] { shared.reset(); });
    copier.join();
    resetter.join();
}
