// A program that attach_test looks into: makes tasks of many kinds, which all wait, writes its own snapshot as one line, and
// stays until its standard input ends.
//
//     attach_target KIND [COUNT [mprotect]]
//     attach_target traced FILE               saves its recording there, too
#include <weft/recorder.hpp>
#include <weft/recording.hpp>
#include <weft/snapshot.hpp>
#include <weft/traced.hpp>
#include <weft/weft.hpp>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using weft::scope;
using weft::task;
using weft::with_scope;
using namespace std::chrono_literals;

weft::event never;

void shown(const char* mark) {
  weft::take_snapshot().json(std::cout);
  std::cout << mark << std::endl;
}

// Waits until all that was started waits, and that many threads of pools run, and writes what the process says of itself.
void show_when(std::size_t tasks_wait, unsigned pool_threads = 0) {
  for (;; std::this_thread::sleep_for(5ms)) {
    const weft::snapshot all = weft::take_snapshot({.stacks = false});
    std::size_t count = 0;
    for (const weft::task_info& one : all.tasks) count += one.state == weft::task_state::waiting;
    unsigned threads = 0;
    for (const weft::pool_info& one : all.pools) threads += one.workers;
    if (all.is_complete && count == tasks_wait && all.tasks.size() == count && threads == pool_threads) break;
  }
  shown("ready");
}

void wait_for_end() {
  for (char some[64]; ::read(STDIN_FILENO, some, sizeof some) > 0;) {
  }
  std::_Exit(0);
}

task<> hold(weft::mutex& m, weft::event& until) {
  const auto held = co_await m.lock();
  co_await until.wait();
}
task<> transfer(weft::mutex& from, weft::mutex& to, weft::latch& both) {
  const auto first = co_await from.lock();
  co_await both.arrive_and_wait();
  const auto second = co_await to.lock();
}
task<int> inner(weft::event& until) {
  co_await until.wait();
  co_return 1;
}
task<int> outer(weft::event& until) { co_return co_await inner(until) + 1; }

struct things {
  weft::mutex mutex, left, right;
  weft::shared_mutex shared;
  weft::semaphore permits{0};
  weft::channel<int> channel{0};
  weft::latch both{2};
  weft::condition_variable changed;
  weft::promise<int> promise;
  weft::channel<int> first_case{0}, second_case{0};
  weft::once once;
  weft::broadcast<int> news{{.capacity = 1}}, full{{.capacity = 1}};
  weft::broadcast<int>::receiver reads_nothing = full.subscribe();
  weft::barrier barrier{2};
  weft::stop_source stop, stop_of_nobody;
  weft::pool workers{{.threads = 2}};
};

// Waits in many ways. Is told to stop, too, and heeds that as little as its fork.
task<> puts_stop_off(things& with) {
  auto body = [](scope& in) -> task<> {
    in.fork([]() -> task<> { co_await weft::shielded(never.wait()); }());
    co_return;
  };
  co_await with_scope({.stop = with.stop.token()}, body);
}

// Of each kind of case, some of them in others.
task<> selects_all(things& with) {
  auto hears = with.news.subscribe();
  auto body = [&](scope& s) -> task<> {
    auto work = s.fork(inner(never));
    std::vector<weft::any_case> any;
    any.emplace_back(weft::on_receive(with.first_case), [](std::optional<int>) {});
    any.emplace_back(weft::on(never.wait()), [] {});
    s.fork([](std::vector<weft::any_case> those) -> task<> {
      static_cast<void>(co_await weft::select(std::move(those)));
    }(std::move(any)));
    static_cast<void>(co_await weft::select(weft::on_receive(with.first_case), weft::on_send(with.second_case, 1),
                                            weft::on_receive(hears), weft::after(1h),
                                            weft::on_stop(with.stop_of_nobody.token()), weft::on(with.mutex.lock()),
                                            weft::on(never.wait()), weft::on(work)));
  };
  co_await with_scope(body);
}

// Cases that are there, and some that are not.
task<> selects_if(things& with) {
  auto hears = with.news.subscribe();
  weft::channel<int>* const nowhere = nullptr;
  std::vector<weft::any_case> any;
  any.emplace_back(weft::on_if(true, weft::on_send(with.second_case, 1)), [] {});
  any.emplace_back(weft::on_if(false, weft::on_send(with.second_case, 1)), [] {});
  any.emplace_back(weft::on(weft::never()), [] {});
  const auto selects_any = [](std::vector<weft::any_case> those) -> task<> {
    static_cast<void>(co_await weft::select(std::move(those)));
  };
  auto body = [&](scope& s) -> task<> {
    auto work = s.fork(inner(never));
    s.fork(selects_any(std::move(any)));
    s.fork([]() -> task<> { static_cast<void>(co_await weft::select(weft::on(weft::never()))); }());
    static_cast<void>(co_await weft::select(
        weft::on_if(true, weft::on_receive(with.first_case)), weft::on_if(false, weft::on_receive(with.first_case)),
        weft::on_if(true, weft::on_send(with.second_case, 1)), weft::on_if(false, weft::on_send(with.second_case, 1)),
        weft::on_if(true, weft::on_receive(hears)), weft::on_if(true, weft::after(1h)),
        weft::on_if(true, weft::on_stop(with.stop_of_nobody.token())), weft::on_if(true, weft::on(with.mutex.lock())),
        weft::on_if(true, weft::on(never.wait())), weft::on_if(true, weft::on(work)), weft::on_receive(nowhere),
        weft::on_receive(&with.first_case), weft::on(weft::never<int>())));
  };
  co_await with_scope(body);
}

// Of more cases than are told, of which most are not there.
task<> selects_many(things& with) {
  std::vector<weft::case_if<weft::receive_case<int>>> all;
  for (int i = 0; i != 60; ++i) all.push_back(weft::on_if(i % 5 == 0, weft::on_receive(with.first_case)));
  static_cast<void>(co_await weft::select(std::move(all)));
}

task<> more_kinds(scope& s, things& with) {
  s.fork([](things& t) -> task<> {
    static_cast<void>(co_await weft::select(weft::on_receive(t.first_case), weft::on_send(t.second_case, 1)));
  }(with));
  s.fork(selects_all(with));
  s.fork(selects_if(with));
  s.fork(selects_many(with));
  for (int i = 0; i != 2; ++i)
    s.fork([](things& t) -> task<> { co_await t.once.call([] { return never.wait(); }); }(with));
  s.fork([](things& t) -> task<> {
    auto hears = t.news.subscribe();
    static_cast<void>(co_await hears.receive());
  }(with));
  s.fork([](things& t) -> task<> {
    for (;;) co_await t.full.send(1);
  }(with));
  s.fork([](weft::barrier& b) -> task<> { static_cast<void>(co_await b.arrive_and_wait()); }(with.barrier));
  s.fork_on(with.workers.executor(), inner(never));
  s.fork(puts_stop_off(with));
  auto told = s.fork([]() -> task<> { co_await weft::shielded(never.wait()); }());
  told.request_stop();
  with.stop.request_stop({.reason = "the target says so"});
  co_return;
}

task<> all_kinds(things& with) {
  auto body = [&](scope& s) -> task<> {
    s.fork(hold(with.mutex, never));
    s.fork(hold(with.mutex, never));
    s.fork(transfer(with.left, with.right, with.both));
    s.fork(transfer(with.right, with.left, with.both));
    s.fork([](weft::shared_mutex& m) -> task<> {
      const auto held = co_await m.lock();
      co_await never.wait();
    }(with.shared));
    s.fork([](weft::shared_mutex& m) -> task<> { const auto held = co_await m.lock_shared(); }(with.shared));
    s.fork([](weft::semaphore& m) -> task<> { const auto held = co_await m.acquire(); }(with.permits));
    s.fork([](weft::channel<int>& c) -> task<> { static_cast<void>(co_await c.receive()); }(with.channel));
    s.fork([]() -> task<> { co_await weft::sleep_for(1h); }());
    s.fork([](weft::promise<int>& p) -> task<> { static_cast<void>(co_await p.get_future()); }(with.promise));
    s.fork([]() -> task<> { static_cast<void>(co_await weft::when_all(outer(never), outer(never))); }());
    s.fork([]() -> task<> { static_cast<void>(co_await weft::when_any(outer(never), inner(never))); }());
    s.fork([]() -> task<> { static_cast<void>(co_await weft::timeout(1h, outer(never))); }());
    s.fork([]() -> task<> {
      auto nested = [](scope& in) -> task<> {
        auto work = in.fork(inner(never));
        static_cast<void>(co_await std::move(work));
      };
      co_await with_scope(nested);
    }());
    s.fork([](things& t) -> task<> {
      weft::mutex own;
      auto held = co_await own.lock();
      co_await t.changed.wait(held);
    }(with));
    static weft::shared_task<int> shared{inner(never)};
    s.fork([]() -> task<> { static_cast<void>(co_await shared); }());
    co_await more_kinds(s, with);
    co_await never.wait();
  };
  co_await with_scope(body);
}

struct seven {
  weft::mutex one, two, three, four, five, six, seven;
  weft::once once;
  weft::latch both{2};
};

task<> locks(weft::mutex& m) { const auto held = co_await m.lock(); }
task<> done_once(seven& of) {
  co_await of.once.call([&of]() -> task<> {
    co_await of.both.arrive_and_wait();
    co_await locks(of.one);
  });
}
task<> waits_for_once(seven& of) {
  const auto held = co_await of.one.lock();
  co_await of.both.arrive_and_wait();
  co_await of.once.call([] {});
}
task<> awaits_shared(weft::mutex& m) {
  static weft::shared_task<> shared{locks(m)};
  const auto held = co_await m.lock();
  co_await shared;
}
task<> joins(weft::mutex& m) {
  const auto held = co_await m.lock();
  co_await weft::when_all(locks(m), locks(m));
}
task<> waits_for_scope(weft::mutex& m) {
  const auto held = co_await m.lock();
  auto body = [&m](scope& s) -> task<> {
    s.fork(locks(m));
    co_return;
  };
  co_await with_scope(body);
}
task<> awaits_fork(weft::mutex& m) {
  auto body = [&m](scope& s) -> task<> {
    const auto held = co_await m.lock();
    auto one = s.fork(locks(m));
    co_await std::move(one);
  };
  co_await with_scope(body);
}
task<> has_timeout(weft::mutex& m) {
  const auto held = co_await m.lock();
  co_await weft::timeout(1h, locks(m));
}
task<> has_deadline(weft::mutex& m) {
  const auto held = co_await m.lock();
  co_await weft::with_deadline(1h, locks, std::ref(m));
}

// Five that wait for each other, and two that something ends.
task<> circles(seven& of) {
  auto body = [&](scope& s) -> task<> {
    s.fork(done_once(of));
    s.fork(waits_for_once(of));
    s.fork(awaits_shared(of.two));
    s.fork(joins(of.three));
    s.fork(waits_for_scope(of.four));
    s.fork(awaits_fork(of.five));
    s.fork(has_timeout(of.six));
    s.fork(has_deadline(of.seven));
    co_await never.wait();
  };
  co_await with_scope(body);
}
// Thread, body, 8 forks, and below those, in their order, a shared task, 2 children, a fork, a body with its fork, a child and a
// body.
constexpr std::size_t tasks_of_circles = 2 + 8 + 1 + 2 + 1 + 2 + 1 + 1;

// Thread, body, 16 + 12 forks, and below those 2 + 2 + 1 children, a body with its fork, the shared task, the fork of a scope that
// is told to stop, and two bodies that select, with two forks and three.
constexpr std::size_t all_tasks = 2 + 16 + 12 + 5 + 2 + 1 + 1 + 3 + 4;

[[gnu::noinline]] int deep(int levels) {
  if (levels == 0) weft::await(never.wait());
  const volatile int below = levels == 0 ? 0 : deep(levels - 1);
  return below + 1;
}

// Memory that is too much to be copied while the process stands, in which something of interest lies.
template <class T>
T& in_much_memory() {
  constexpr std::size_t bytes = std::size_t{112} << 20;
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) std::abort();
  return *new (static_cast<std::byte*>(at) + bytes / 2) T;
}

// Tasks that wait for each other's mutexes, but never hold one while they wait for another.
int contended() {
  static auto& mutexes = in_much_memory<std::array<weft::mutex, 4>>();
  std::thread{wait_for_end}.detach();
  weft::pool threads{{.threads = 2}};
  threads.run(with_scope([](scope& s) -> task<> {
    for (std::uint32_t i = 0; i != 32; ++i)
      s.fork([](std::uint32_t next) -> task<> {
        for (;;) {
          next = next * 1664525 + 1013904223;
          const auto held = co_await mutexes[next >> 30].lock();
          co_await weft::sleep_for(20us);
        }
      }(i));
    std::cout << "{}\nready" << std::endl;
    co_await never.wait();
  }));
  return 2;
}

// ---- what runs ------------------------------------------------------------------------------------------------------------

std::atomic<int> computing{0};  // so many have come to where they stay

// Plain functions that are not inlined: they are to be seen on the stack of the thread.
[[gnu::noinline]] int spins(int levels) {
  if (levels != 0) {
    const volatile int below = spins(levels - 1);
    return below + 1;
  }
  ++computing;
  // In the kernel's own code, too, which is in no file.
  while (std::chrono::steady_clock::now() != std::chrono::steady_clock::time_point{}) {
  }
  return 0;
}
[[gnu::noinline]] int reads() {
  ++computing;
  wait_for_end();
  return 0;
}

task<int> computes() {
  co_await weft::yield();  // to a thread of its own
  co_return spins(2) + 1;
}
task<> serves() { static_cast<void>(co_await computes()); }
[[gnu::noinline]] int computes_in_fiber() {
  weft::await(weft::yield());
  const volatile int below = spins(1);  // so that this is no jump there, and has a frame
  return below + 1;
}
[[gnu::noinline]] int awaits_in_fiber() {
  const volatile int below = weft::await(computes());
  return below + 1;
}
task<> blocks() {
  static_cast<void>(reads());
  co_return;
}

// Each on a thread of its own: a coroutine that another one awaits, a fiber in plain functions, one that awaits a coroutine, and a
// fork that has not waited yet, in a system call.
int running(weft::stack_guard guard) {
  static weft::stack_pool stacks{{.guard = guard}};
  weft::pool workers{{.threads = 4}};
  std::thread{[] {
    while (computing != 4) std::this_thread::sleep_for(1ms);
    std::cout << "{}\nready" << std::endl;
  }}.detach();
  workers.run(with_scope([](scope& s) -> task<> {
    s.fork(serves());
    s.go({.pool = &stacks}, [] { static_cast<void>(computes_in_fiber()); });
    s.go({.pool = &stacks}, [] { static_cast<void>(awaits_in_fiber()); });
    s.fork(blocks());
    co_return;
  }));
  return 2;
}

// On a worker after a wait, and in the first turn of a sync_wait.
int traced_run() {
  static weft::pool workers{{.threads = 1}};
  std::thread{[] {
    while (computing != 2) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(30ms);
    shown("ready");
    wait_for_end();
  }}.detach();
  std::thread{[] {
    weft::sync_wait(weft::with_trace({.name = "GET /cart"}, []() -> task<> { co_return void(spins(1)); }));
  }}.detach();
  weft::sync_wait(weft::start_on(workers.executor(), weft::with_trace({.name = "GET /cart"}, serves)));
  return 2;
}

// ---- what the flight recorder has ---------------------------------------------------------------------------------------

task<> stop_because(const char* reason) {
  auto body = [=](scope& s) -> task<> {
    s.request_stop({.reason = reason});
    co_return;
  };
  static_cast<void>(co_await weft::as_result(with_scope(body)));
}
task<> serve_cart(weft::executor& workers) {
  weft::channel<int> numbers{0};
  auto body = [&](scope& s) -> task<> {
    s.fork([&]() -> task<> {
      for (int i = 0; i != 3; ++i) co_await numbers.receive();
    });
    for (int i = 0; i != 3; ++i) co_await numbers.send(i);
  };
  co_await with_scope({.executor = &workers}, body);
}

// Threads that have ended and left their rings to others, a ring whose events were written over, requests on workers; and then
// nothing more, once the workers sleep.
int traced(const char* file) {
  for (const char* reason : {"of one thread", "of another one"})
    std::thread{[=] { weft::sync_wait(stop_because(reason)); }}.join();
  weft::pool workers{{.threads = 2, .name = "shop"}};
  for (int i = 0; i != 3; ++i)
    weft::sync_wait(weft::with_trace({.name = "GET /cart"}, serve_cart, std::ref(workers.executor())));
  weft::set_recorder_bytes(64 * sizeof(weft::recorded_event));
  static std::atomic<bool> has_stopped_all{false};
  std::thread{[] {
    for (int i = 0; i != 200; ++i) weft::sync_wait(stop_because("the last ones count"));
    has_stopped_all = true;
    ::pause();
  }}.detach();
  while (!has_stopped_all) std::this_thread::sleep_for(1ms);
  std::size_t before = 0;
  for (int equal = 0; equal != 4;) {
    std::this_thread::sleep_for(50ms);
    weft::save_recording(file);
    const std::size_t now = weft::recording::read(file).events().size();
    equal = now == std::exchange(before, now) ? equal + 1 : 0;
  }
  std::cout << "{}\nready" << std::endl;
  wait_for_end();
  return 0;
}

// Goes on recording until the end.
int busy() {
  weft::set_recorder_bytes(std::size_t{1} << 16);
  std::thread{wait_for_end}.detach();
  weft::pool workers{{.threads = 2, .name = "shop"}};
  for (bool is_first = true;; is_first = false) {
    weft::sync_wait(weft::with_trace({.name = "GET /cart"}, serve_cart, std::ref(workers.executor())));
    if (is_first) std::cout << "{}\nready" << std::endl;
  }
}

int records_nothing() {
  weft::set_recorder_bytes(0);
  weft::sync_wait(stop_because("nobody hears it"));
  std::cout << "{}\nready" << std::endl;
  wait_for_end();
  return 0;
}

int run(std::string_view kind, std::size_t count, weft::stack_guard guard) {
  if (kind == "all" || kind == "all_in_much_memory") {
    static things& with = kind == "all" ? *new things : in_much_memory<things>();
    std::thread{[] {  // which stays, as one of the threads that it has shown
      show_when(all_tasks, 2);
      wait_for_end();
    }}
        .detach();
    weft::sync_wait(all_kinds(with));
  } else if (kind == "circles") {
    static seven with;
    std::thread{[] {
      show_when(tasks_of_circles);
      wait_for_end();
    }}.detach();
    weft::sync_wait(circles(with));
  } else if (kind == "fibers") {
    std::thread{[=] {
      show_when(2 + count);
      wait_for_end();
    }}.detach();
    static weft::stack_pool stacks{{.guard = guard}};
    weft::sync_wait(with_scope([=](scope& s) -> task<> {
      for (std::size_t i = 0; i != count; ++i) s.go({.pool = &stacks}, [=] { deep(static_cast<int>(i % 16)); });
      co_await never.wait();
    }));
  } else if (kind == "many") {
    std::thread{wait_for_end}.detach();
    weft::pool threads{{.threads = 2}};
    threads.run(with_scope([=](scope& s) -> task<> {
      for (std::size_t i = 0; i != count; ++i) s.fork(inner(never));
      std::thread{[=] {
        for (std::size_t waiting = 0; waiting < count; std::this_thread::sleep_for(20ms)) {
          waiting = 0;
          for (const weft::task_info& one : weft::take_snapshot({.stacks = false, .deadlocks = false}).tasks)
            waiting += one.state == weft::task_state::waiting;
        }
        std::cout << "{}\nready" << std::endl;
      }}.detach();
      co_await never.wait();
    }));
  } else if (kind == "starting") {
    // The body forks, and blocks its thread before it has waited once.
    weft::sync_wait(with_scope([=](scope& s) -> task<> {
      for (std::size_t i = 0; i != count; ++i) s.fork(inner(never));
      shown("ready");
      wait_for_end();
      co_return;
    }));
  } else if (kind == "traced_wait") {
    std::thread{[] {
      show_when(1);
      wait_for_end();
    }}.detach();
    weft::sync_wait(weft::with_trace({.name = "GET /cart"}, [] { return inner(never); }));
  } else if (kind == "traced_run") {
    return traced_run();
  } else if (kind == "without_main") {
    // All of it in other threads: the first one ends, without running anything of its end.
    std::thread{[=] {
      weft::sync_wait(stop_because("without main"));
      run("all", count, guard);
    }}.detach();
    ::syscall(SYS_exit, 0);
  } else if (kind == "crash") {
    static things with;
    std::thread{[] {
      show_when(all_tasks, 2);
      std::abort();
    }}.detach();
    weft::sync_wait(all_kinds(with));
  }
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc > 1 ? argv[1] : "";
  if (kind == "traced") return argc > 2 ? traced(argv[2]) : 2;
  if (kind == "busy") return busy();
  if (kind == "contended") return contended();
  if (kind == "records_nothing") return records_nothing();
  const std::size_t count = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 0;
  const auto guard = argc > 3 ? weft::stack_guard::mprotect : weft::stack_guard::automatic;
  if (kind == "running") return running(guard);
  return argc > 1 ? run(argv[1], count, guard) : 2;
}
