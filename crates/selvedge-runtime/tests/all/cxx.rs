//! C++: threads, locks, once, local statics, futures, exceptions, static objects, streams.

use selvedge_core::FailureKind::{
    Abort, Assertion, DataRace, Deadlock, ObjectMisuse, UncaughtException,
};

use selvedge_runtime::{Settings, Unroll};

use crate::common::isolated;
use crate::common::search::{check_cxx, check_cxx_all, check_cxx_once, check_cxx_with};

/// A C++ program.
fn program(globals: &str, body: &str) -> String {
    format!(
        r#"
        #include <atomic>
        #include <cassert>
        #include <chrono>
        #include <condition_variable>
        #include <mutex>
        #include <shared_mutex>
        #include <stdexcept>
        #include <thread>
        #include <vector>
        {globals}
        int main() {{ {body} }}
    "#
    )
}

/// A program whose two threads run `body`.
fn two_threads(globals: &str, body: &str, after: &str) -> String {
    let main = format!(
        "auto work = [](int me) {{ (void)me; {body} }};
         std::thread a(work, 1), b(work, 2); a.join(); b.join(); {after}"
    );
    program(globals, &main)
}

#[test]
fn a_mutex_guards() {
    isolated("a_mutex_guards", || {
        check_cxx_all(
            &two_threads(
                "std::mutex m; int shared;",
                "std::lock_guard<std::mutex> guard(m); shared++;",
                "assert(shared == 2);",
            ),
            |checked| checked.is_fine_in(2),
        );
    });
}

#[test]
fn an_unguarded_counter_races() {
    isolated("an_unguarded_counter_races", || {
        check_cxx(&two_threads("int shared;", "shared++;", "")).has_bug(DataRace, "shared");
    });
}

#[test]
fn every_kind_of_mutex_works() {
    isolated("every_kind_of_mutex_works", || {
        check_cxx_once(
            &two_threads(
                "std::recursive_mutex r; std::timed_mutex t; std::shared_mutex s; int shared, timed;",
                "{ std::lock_guard<std::recursive_mutex> one(r), two(r); shared++; }
                 if (t.try_lock_for(std::chrono::seconds(1))) { timed++; t.unlock(); }
                 if (me == 1) { std::unique_lock<std::shared_mutex> lock(s); shared++; }
                 else { std::shared_lock<std::shared_mutex> lock(s); assert(shared >= 1); }",
                "assert(timed >= 1);",
            ),
            |checked| {
                checked.has_bug(DataRace, "shared");
            },
        );
        // std::lock gives back what it has and tries again, without end.
        let bounded = Settings {
            unroll: Unroll::all(2),
            ..Settings::default()
        };
        check_cxx_with(
            bounded,
            &two_threads(
                "std::mutex x, y; int shared;",
                "if (me == 1) std::lock(x, y); else std::lock(y, x);
                 shared++; x.unlock(); y.unlock();",
                "assert(shared == 2);",
            ),
        )
        .is_fine();
        check_cxx(&two_threads(
            "std::mutex x, y;",
            "auto &one = me == 1 ? x : y, &other = me == 1 ? y : x;
             std::lock_guard<std::mutex> first(one), second(other);",
            "",
        ))
        .has_bug(Deadlock, "");
        check_cxx(&program("std::mutex m;", "m.unlock();")).has_bug(ObjectMisuse, "does not hold");
    });
}

#[test]
fn condition_variables_wake() {
    isolated("condition_variables_wake", || {
        check_cxx_once(
            &two_threads(
                "std::mutex m; std::condition_variable c; bool ready;",
                "std::unique_lock<std::mutex> lock(m);
                 if (me == 1) c.wait(lock, [] { return ready; });
                 else { ready = true; c.notify_one(); }",
                "",
            ),
            |checked| checked.is_fine_in(2),
        );
        check_cxx(&two_threads(
            "std::mutex m; std::condition_variable_any c; bool ready;",
            "std::unique_lock<std::mutex> lock(m);
             if (me == 1) c.wait(lock, [] { return ready; });
             else { ready = true; c.notify_all(); }",
            "",
        ))
        .is_fine();
        check_cxx(&two_threads(
            "std::mutex m; std::condition_variable c; bool ready;",
            "std::unique_lock<std::mutex> lock(m);
             if (me == 1) { bool in_time = c.wait_for(lock, std::chrono::milliseconds(5),
                                                      [] { return ready; });
                            assert(in_time == ready); }
             else { ready = true; c.notify_one(); }",
            "",
        ))
        .is_fine();
    });
}

#[test]
fn atomics_and_call_once_and_statics() {
    isolated("atomics_and_call_once_and_statics", || {
        check_cxx_all(
            &two_threads(
                "std::atomic<int> x{0}; std::once_flag once; int made, called;
                 struct Static { int value; Static() : value(5) { made++; } ~Static() { assert(x == 2); } };
                 Static &instance() { static Static it; return it; }",
                "x++; std::call_once(once, [] { called++; }); assert(called == 1);
                 assert(instance().value == 5);",
                "assert(x == 2 && made == 1 && called == 1);",
            ),
            |checked| {
                checked.is_fine();
            },
        );
    });
}

#[test]
fn a_routine_that_throws_is_called_again() {
    isolated("a_routine_that_throws_is_called_again", || {
        check_cxx_once(
            &program(
                "std::once_flag once; int calls, tries;
                 struct Fussy { Fussy() { if (++tries < 3) throw std::runtime_error(\"not yet\"); } };
                 Fussy &fussy() { static Fussy it; return it; }",
                "for (int i = 0; i < 3; i++)
                     try { std::call_once(once, [] { if (++calls < 2) throw calls; }); }
                     catch (int) { assert(calls == 1); }
                 assert(calls == 2);
                 for (int i = 0; i < 4; i++) try { fussy(); } catch (std::exception &) {}
                 assert(tries == 3);",
            ),
            |checked| checked.is_fine_in(1),
        );
        check_cxx(&program(
            "int &loop(int depth) { static int value = loop(depth + 1); return value; }",
            "return loop(0);",
        ))
        .has_bug(ObjectMisuse, "same static");
    });
}

#[test]
fn exceptions_are_caught_in_their_thread() {
    isolated("exceptions_are_caught_in_their_thread", || {
        check_cxx_all(
            &two_threads(
                "std::mutex m; std::atomic<int> caught, destroyed;
                 struct Guard { ~Guard() { destroyed++; } };
                 void thrower(int depth) { Guard guard; if (depth) thrower(depth - 1);
                                           else throw std::runtime_error(\"deep\"); }",
                "try { std::lock_guard<std::mutex> lock(m); thrower(1); }
                 catch (const std::exception &e) { if (e.what() == std::string(\"deep\")) caught++; }",
                "assert(caught == 2 && destroyed == 4);",
            ),
            |checked| {
                checked.is_fine();
            },
        );
    });
}

#[test]
fn an_uncaught_exception_is_a_bug_with_its_name() {
    isolated("an_uncaught_exception_is_a_bug_with_its_name", || {
        check_cxx_all(
            &program(
                "",
                "std::thread t([] { throw std::runtime_error(\"lost\"); }); t.join();",
            ),
            |checked| {
                checked.has_bug(UncaughtException, "std::runtime_error: lost");
            },
        );
        check_cxx(&program("struct Mine {};", "throw Mine();")).has_bug(UncaughtException, "Mine");
        check_cxx(&program(
            "void f() noexcept { throw 1; }",
            "try { f(); } catch (...) {}",
        ))
        .has_bug(UncaughtException, "int");
        check_cxx(&program("", "std::terminate();")).has_bug(Abort, "std::terminate");
        // The destructor of a thread that was neither joined nor detached.
        check_cxx(&program("", "std::thread t([] {});")).has_bug(Abort, "std::terminate");
        check_cxx(&program("", "std::thread t([] {}); t.detach();")).is_fine();
    });
}

#[test]
fn futures_hand_over_values_and_exceptions() {
    isolated("futures_hand_over_values_and_exceptions", || {
        check_cxx_all(
            &program(
                "#include <future>",
                "auto f = std::async(std::launch::async, [] { return 3; }); assert(f.get() == 3);
                 std::promise<int> p; auto g = p.get_future();
                 std::thread t([&] { p.set_value(4); }); assert(g.get() == 4); t.join();
                 auto lazy = std::async(std::launch::deferred, [] { return 5; });
                 assert(lazy.get() == 5);",
            ),
            |checked| {
                checked.is_fine();
            },
        );
        check_cxx(&program(
            "#include <future>",
            "auto f = std::async(std::launch::async, []() -> int { throw std::runtime_error(\"x\"); });
             try { f.get(); assert(false); } catch (const std::runtime_error &e) {
                 assert(e.what()[0] == 'x'); }",
        ))
        .is_fine();
        check_cxx(&program(
            "#include <future>",
            "std::promise<int> p; auto f = p.get_future();
             std::packaged_task<int(int)> task([](int x) { return x + 1; });
             auto r = task.get_future(); std::thread t(std::move(task), 4);
             assert(r.get() == 5); t.join();
             assert(f.wait_for(std::chrono::seconds(1)) == std::future_status::timeout);",
        ))
        .is_fine();
    });
}

#[test]
fn whoever_is_last_destroys_a_shared_exception() {
    isolated("whoever_is_last_destroys_a_shared_exception", || {
        check_cxx_all(
            &program(
                "#include <future>\n std::atomic<int> x;",
                "std::thread t;
                 { std::promise<int> p; auto f = p.get_future();
                   t = std::thread([](std::promise<int> p) {
                       try { throw std::runtime_error(\"x\"); }
                       catch (...) { p.set_exception(std::current_exception()); x = 1; } },
                       std::move(p));
                   try { f.get(); } catch (const std::runtime_error &e) { assert(e.what()[0] == 'x'); } }
                 int y = x; (void)y; t.join();",
            ),
            |checked| {
                checked.is_fine();
            },
        );
    });
}

#[test]
fn static_and_thread_local_objects_are_destroyed() {
    isolated("static_and_thread_local_objects_are_destroyed", || {
        check_cxx_all(
            &program(
                "std::atomic<int> locals; int order;
                 struct Local { int id = 7; ~Local() { locals++; } };
                 thread_local Local local;
                 struct Last { Last() { order = 1; } ~Last() { assert(order == 3); } } last;
                 struct Earlier { ~Earlier() { assert(order == 1 && locals == 3); order = 3; } } earlier;",
                "assert(order == 1 && local.id == 7);
                 std::thread a([] { local.id++; }), b([] { assert(local.id == 7); });
                 a.join(); b.join(); assert(locals == 2);",
            ),
            |checked| {
                checked.is_fine();
            },
        );
        check_cxx(&program("struct S { ~S() { assert(false); } } s;", "")).has_bug(Assertion, "");
    });
}

#[test]
fn pthread_exit_unwinds() {
    isolated("pthread_exit_unwinds", || {
        check_cxx_all(
            &program(
                "#include <pthread.h>\n
                 std::mutex m; int destroyed; struct Guard { ~Guard() { destroyed++; } };
                 void *worker(void *) { Guard guard; std::lock_guard<std::mutex> lock(m);
                                        pthread_exit((void *)9); }",
                "pthread_t t; void *r; pthread_create(&t, 0, worker, 0); pthread_join(t, &r);
                 assert(r == (void *)9 && destroyed == 1 && m.try_lock()); m.unlock();",
            ),
            |checked| checked.is_fine_in(1),
        );
    });
}

#[test]
fn streams_and_containers_work() {
    isolated("streams_and_containers_work", || {
        check_cxx_once(
            &two_threads(
                "#include <iostream>\n#include <map>\n#include <memory>\n#include <sstream>\n#include <string>\n
                 std::mutex m; std::map<int, std::string> names; std::shared_ptr<int> shared =
                     std::make_shared<int>(5);",
                "std::ostringstream text; text << \"thread \" << me << ' ' << 2.5;
                 std::cout << text.str() << std::endl; std::cerr << me << '\\n';
                 auto copy = shared; assert(*copy == 5);
                 std::lock_guard<std::mutex> lock(m); names[me] = text.str();",
                "assert(names.size() == 2 && names[1] == \"thread 1 2.5\");",
            ),
            |checked| {
                checked.is_fine();
            },
        );
    });
}

#[test]
fn what_the_library_would_do_behind_the_program_is_refused() {
    isolated(
        "what_the_library_would_do_behind_the_program_is_refused",
        || {
            for (body, what) in [
                ("int x; std::cin >> x; return x;", "reads input"),
                (
                    "std::ifstream file(\"data\"); return file.good();",
                    "uses files",
                ),
            ] {
                check_cxx(&program("#include <fstream>\n#include <iostream>\n", body))
                    .is_refused(what);
            }
        },
    );
}

#[test]
fn random_devices_repeat() {
    isolated("random_devices_repeat", || {
        check_cxx_once(
            &two_threads(
                "#include <random>\n std::atomic<unsigned> x;",
                "std::random_device device; x = device(); std::mt19937 generator(device());
                 std::uniform_int_distribution<int> die(1, 6); int n = die(generator);
                 assert(1 <= n && n <= 6);",
                "assert(x != 0);",
            ),
            |checked| checked.is_fine_in(2),
        );
    });
}

#[test]
fn new_and_delete_are_malloc_and_free() {
    isolated("new_and_delete_are_malloc_and_free", || {
        use selvedge_core::FailureKind::{DoubleFree, HeapOverflow, UseAfterFree};
        check_cxx_once(
            &program(
                "struct alignas(128) Wide { char bytes[128]; };",
                "int *p = new int(3); delete p; int *q = new int[10](); assert(q[9] == 0); delete[] q;
                 Wide *w = new Wide; assert(reinterpret_cast<std::size_t>(w) % 128 == 0); delete w;
                 std::vector<int> v; for (int i = 0; i < 100; i++) v.push_back(i); assert(v[99] == 99);",
            ),
            |checked| checked.is_fine_in(1),
        );
        check_cxx(&program("", "int *p = new int; delete p; delete p;")).has_bug(DoubleFree, "");
        check_cxx(&program("", "int *p = new int; delete p; *p = 1;")).has_bug(UseAfterFree, "");
        check_cxx(&program("", "int *p = new int[2]; p[2] = 1;")).has_bug(HeapOverflow, "");
    });
}
#[test]
fn objects_on_the_stack_begin_anew_in_every_call() {
    isolated("objects_on_the_stack_begin_anew_in_every_call", || {
        check_cxx_all(
            &program(
                "void round() { std::mutex m; std::condition_variable c; std::atomic<int> x{0};
                     std::thread t([&] { std::lock_guard<std::mutex> lock(m); x = 1; c.notify_one(); });
                     { std::unique_lock<std::mutex> lock(m); c.wait(lock, [&] { return x == 1; }); }
                     t.join(); }",
                "round(); round();",
            ),
            |checked| {
                checked.is_fine();
            },
        );
    });
}
