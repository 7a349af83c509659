// A small shared pointer: copies count up, destructors count down, the last one deletes.
//
// Each of two threads counts up once and down twice: C(6, 3) = 20 orders of these.
//
// Check:    selvedge verify examples/c/shared_count.cpp
// Expected: verified
// Source:   after boost::shared_ptr (G. Colvin, B. Dawes, 1999) and std::shared_ptr, C++11
#include <atomic>
#include <cassert>
#include <thread>
#include <utility>

static std::atomic<int> alive{0};

struct Payload {
    explicit Payload(int v) : value(v) { alive.fetch_add(1, std::memory_order_relaxed); }
    ~Payload() { alive.fetch_sub(1, std::memory_order_relaxed); }
    int value;
};

template <typename T> class Shared {
public:
    explicit Shared(T *object) : block(new Block{object, {1}}) {}
    Shared(const Shared &other) : block(other.block)
    {
        block->count.fetch_add(1, std::memory_order_relaxed);
    }
    Shared(Shared &&other) noexcept : block(std::exchange(other.block, nullptr)) {}
    Shared &operator=(const Shared &) = delete;
    ~Shared()
    {
        if (block != nullptr && block->count.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            delete block->object;
            delete block;
        }
    }
    T *operator->() const { return block->object; }

private:
    struct Block {
        T *object;
        std::atomic<int> count;
    };
    Block *block;
};

static void use(Shared<Payload> shared)
{
    Shared<Payload> copy(shared);
    assert(copy->value == 42);
}

int main()
{
    {
        Shared<Payload> shared(new Payload(42));
        std::thread first(use, shared);
        std::thread second(use, std::move(shared));
        first.join();
        second.join();
    }
    assert(alive.load() == 0);
}
