// sylar's programs of its fibers and its scheduler (test_fiber.cc and test_scheduler.cc) in weft.
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <weft/weft.hpp>

namespace w = weft;

// test_fiber: on three threads, each of which resumes a fiber by hand. The lines of a thread are printed when it has ended.
std::string test_fiber() {
  std::string log = "main begin\n";
  w::coroutine<void()> fiber{[&](auto& yield) {
    log += "run_in_fiber begin\n";
    yield();  // sylar::Fiber::YieldToHold();
    log += "run_in_fiber end\n";
    yield();
  }};
  fiber.resume();  // fiber->swapIn();
  log += "main after swapIn\n";
  fiber.resume();
  log += "main after end\n";
  fiber.resume();
  return log + (fiber.done() ? "main after end2\n" : "it still runs\n");
}

void on_three_threads() {
  std::array<std::string, 3> logs;
  std::array<std::thread, 3> threads;
  for (std::size_t i = 0; i != threads.size(); ++i) threads[i] = std::thread{[&logs, i] { logs[i] = test_fiber(); }};
  for (std::thread& one : threads) one.join();
  for (std::size_t i = 0; i != logs.size(); ++i) std::printf("name_%zu\n%s", i, logs[i].c_str());
}

// test_scheduler: a fiber that has itself scheduled again, until it was five times over. The scope ends after the last one:
// nobody has to know when to call stop().
void test_in_fiber(w::scope& on, int count) {
  std::printf("test in fiber count=%d\n", count);
  w::this_fiber::sleep_for(std::chrono::milliseconds{1});               // sleep(1), under the hook
  if (--count >= 0) on.go([&on, count] { test_in_fiber(on, count); });  // Scheduler::GetThis()->schedule(&test_fiber)
}

w::task<> scheduled(w::executor& where) {
  auto body = [](w::scope& s) -> w::task<> {
    std::puts("schedule");
    s.go([&s] { test_in_fiber(s, 5); });  // sc.schedule(&test_fiber);
    co_return;
  };
  co_await w::with_scope({.executor = &where}, body);
}

int main() {
  on_three_threads();
  w::pool scheduler{{.threads = 3}};  // sylar::Scheduler sc(3, false, "test"); sc.start();
  w::sync_wait(scheduled(scheduler));
  std::puts("over");  // sc.stop();
}
