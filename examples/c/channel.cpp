// A channel: std::deque, std::mutex and std::condition_variable, closed by the sender.
//
// Check:    selvedge verify examples/c/channel.cpp -- -std=c++17
// Expected: verified
// Source:   C. A. R. Hoare, "Communicating Sequential Processes", CACM 21(8), 1978, in spirit
#include <cassert>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#ifndef ITEMS
#define ITEMS 2
#endif

template <typename T> class Channel {
public:
    void send(T value)
    {
        std::lock_guard<std::mutex> hold(mutex);
        queue.push_back(std::move(value));
        changed.notify_one();
    }

    void close()
    {
        std::lock_guard<std::mutex> hold(mutex);
        closed = true;
        changed.notify_one();
    }

    std::optional<T> receive()
    {
        std::unique_lock<std::mutex> hold(mutex);
        changed.wait(hold, [this] { return !queue.empty() || closed; });
        if (queue.empty())
            return std::nullopt;
        T value = std::move(queue.front());
        queue.pop_front();
        return value;
    }

private:
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<T> queue;
    bool closed = false;
};

int main()
{
    Channel<int> channel;
    std::thread sender([&channel] {
        for (int i = 0; i < ITEMS; i++)
            channel.send(i);
        channel.close();
    });
    int expected = 0;
    while (std::optional<int> value = channel.receive())
        assert(*value == expected++);
    assert(expected == ITEMS);
    sender.join();
}
