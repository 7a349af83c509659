// Deposits and withdrawals by std::thread under a std::mutex.
//
// Every operation is one critical section: with three threads 3! = 6 executions.
//
// Check:    selvedge verify examples/c/account.cpp
// Expected: verified
// Source:   folklore
#include <cassert>
#include <mutex>
#include <thread>
#include <vector>

#ifndef THREADS
#define THREADS 3
#endif

class Account {
public:
    void deposit(int amount)
    {
        std::lock_guard<std::mutex> hold(mutex);
        balance += amount;
    }

    int current()
    {
        std::lock_guard<std::mutex> hold(mutex);
        return balance;
    }

private:
    std::mutex mutex;
    int balance = 0;
};

int main()
{
    Account account;
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back([&account, i] { account.deposit(i + 1); });
    for (std::thread &thread : threads)
        thread.join();
    assert(account.current() == THREADS * (THREADS + 1) / 2);
}
