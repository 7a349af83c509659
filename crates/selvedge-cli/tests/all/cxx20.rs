//! The ways to wait in C++20: atomics, latches, barriers, semaphores, stop tokens.

use crate::common::{Outcome, Sandbox, compilers};

const HEADERS: &str = "\
#include <atomic>
#include <barrier>
#include <cassert>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <semaphore>
#include <thread>
";

fn check(compiler: &str, model: &str, text: &str) -> Outcome {
    let sandbox = Sandbox::with("program.cpp", &format!("{HEADERS}{text}"));
    let options = ["--cc", compiler, "--model", model, "--format", "json"];
    let flags = ["--", "-std=c++20"];
    sandbox.run(&[&["verify", "program.cpp"], &options[..], &flags].concat())
}

fn is_verified(compiler: &str, model: &str, text: &str, executions: u64) {
    let report = check(compiler, model, text).ends_with(0).json();
    assert_eq!(report["executions"], executions, "{compiler}, {model}");
}

fn has_bug(text: &str, kind: &str) {
    let report = check("gcc", "rc11", text).ends_with(1).json();
    assert_eq!(report["bug"]["kind"], kind);
}

/// A notification is never lost, however weak the store before it is.
#[test]
fn a_waiting_atomic_is_woken() {
    let text = "
std::atomic<int> flag; int data;
int main() {
  std::thread thread([] { data = 5; flag.store(1, std::memory_order_release); flag.notify_one(); });
  flag.wait(0, std::memory_order_acquire);
  assert(data == 5);
  thread.join();
}
";
    for compiler in compilers() {
        is_verified(compiler, "rc11", text, 5);
    }
    is_verified("gcc", "tso", text, 5);
    is_verified("gcc", "sc", text, 5);
}

#[test]
fn what_nobody_notifies_waits_for_good() {
    let text = "
std::atomic<bool> flag;
int main() {
  std::thread thread([] { flag = true; });
  flag.wait(false);
  thread.join();
}
";
    has_bug(text, "deadlock");
}

/// libstdc++ wakes all who wait for an object that is no word; others do not.
#[test]
fn one_notification_wakes_one_of_two() {
    let text = "
std::atomic<bool> flag;
int main() {
  std::thread one([] { flag.wait(false); }), other([] { flag.wait(false); });
  flag = true;
  flag.notify_one();
  one.join();
  other.join();
}
";
    has_bug(text, "deadlock");
}

#[test]
fn a_wait_does_not_order_what_its_accesses_do_not() {
    let text = "
std::atomic<int> flag; int data;
int main() {
  std::thread thread([] { data = 5; flag.store(1, std::memory_order_relaxed); flag.notify_one(); });
  flag.wait(0, std::memory_order_relaxed);
  assert(data == 5);
  thread.join();
}
";
    has_bug(text, "data-race");
}

#[test]
fn latches_barriers_and_semaphores_order_their_users() {
    let latch = "
int data[2];
int main() {
  std::latch done(2);
  std::thread one([&] { data[0] = 1; done.count_down(); }), other([&] { data[1] = 1; done.count_down(); });
  done.wait();
  assert(data[0] + data[1] == 2);
  one.join();
  other.join();
}
";
    is_verified("gcc", "rc11", latch, 20);
    let barrier = "
int x[2], y[2];
int main() {
  std::barrier both(2);
  auto run = [&](int i) { x[i] = 1; both.arrive_and_wait(); y[i] = x[1 - i]; both.arrive_and_wait(); };
  std::thread one(run, 0), other(run, 1);
  one.join();
  other.join();
  assert(y[0] == 1 && y[1] == 1);
}
";
    is_verified("gcc", "rc11", barrier, 190);
    let semaphore = "
int data[2]; std::atomic<int> taken;
int main() {
  std::counting_semaphore<2> free(0);
  std::thread one([&] { data[0] = 1; free.release(); }), other([&] { data[1] = 1; free.release(); });
  free.acquire();
  free.acquire();
  assert(data[0] + data[1] == 2);
  assert(!free.try_acquire_for(std::chrono::seconds(1)));
  one.join();
  other.join();
}
";
    is_verified("gcc", "rc11", semaphore, 54);
}

/// A thread that finds the semaphore taken must not sleep on a value from before it was taken.
#[test]
fn a_binary_semaphore_is_a_lock() {
    let text = "
std::binary_semaphore lock(1); int data;
int main() {
  std::thread one([] { lock.acquire(); data++; lock.release(); });
  std::thread other([] { lock.acquire(); data++; lock.release(); });
  one.join();
  other.join();
  assert(data == 2);
}
";
    for compiler in compilers() {
        is_verified(compiler, "rc11", text, 12);
    }
    is_verified("gcc", "tso", text, 12);
    is_verified("gcc", "sc", text, 12);
    let unlocked = text.replacen("lock.acquire();", "lock.try_acquire();", 1);
    has_bug(&unlocked, "data-race");
    let kept = text.replacen("lock.release();", "", 1);
    has_bug(&kept, "deadlock");
}

/// The lock of a stop token's state spins, and clang would compile it to a jump through a table.
#[test]
fn the_lock_of_a_stop_token_is_seen_to_spin() {
    let text = "
std::atomic<int> calls;
int main() {
  std::stop_source source;
  std::thread thread([token = source.get_token()] { std::stop_callback call(token, [] { calls++; }); });
  source.request_stop();
  thread.join();
  assert(calls <= 1);
}
";
    for compiler in compilers() {
        check(compiler, "rc11", text).ends_with(0);
    }
}

/// The library's headers call one another's insides, which those of ours have to have as well.
#[test]
fn every_header_compiles_and_shared_pointers_are_atomic() {
    let text = "
#include <bits/stdc++.h>
std::atomic<std::shared_ptr<int>> latest;
int main() {
  latest.store(std::make_shared<int>(1));
  std::thread thread([] { latest.store(std::make_shared<int>(2)); });
  auto seen = latest.load();
  assert(*seen == 1 || *seen == 2);
  thread.join();
  assert(*latest.load() == 2);
}
";
    check("gcc", "sc", text).ends_with(0);
}

/// libstdc++ counts without atomic operations for as long as it believes that there is one thread.
#[test]
fn references_are_counted_atomically_from_the_start() {
    let text = "
#include <memory>
int main() {
  auto one = std::make_shared<int>(1);
  std::thread thread([other = one] { auto third = other; assert(*third == 1); });
  one.reset();
  thread.join();
}
";
    is_verified("gcc", "rc11", text, 4);
}
