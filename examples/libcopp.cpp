// The programs of libcopp's README (its sample_readme_1 to _6) in weft: a coroutine, a task, tasks found by their number, a
// pool of stacks, one task after another, and C++20 coroutines.
#include <chrono>
#include <cstdio>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

// 1. coroutine_context: resumed by hand. What it yields and returns has a type.
void by_hand() {
  w::coroutine<int()> runner{[](auto& yield) {
    std::puts("1: is running");
    yield(0);
    std::puts("1: is resumed");
    return 1;
  }};
  std::puts("1: is created");
  runner.resume();  // libcopp: start()
  std::puts("1: has yielded");
  const int code = runner.resume();
  std::printf("1: exits and returns %d\n", code);
}

// 2. cotask::task: a fiber of a scope. Nobody resumes it; it waits for something, here for its next turn.
w::task<> in_a_scope() {
  auto body = [](w::scope& s) -> w::task<> {
    s.go([] {
      std::puts("2: started");
      w::this_fiber::yield();
      std::puts("2: resumed");
    });
    std::puts("2: has yielded");
    co_return;
  };
  co_await w::with_scope(body);
  std::puts("2: has ended");
}

// 3. task_manager: start, resume and kill by number; the first has a limit of five seconds.
w::task<> by_number() {
  w::registry tasks;
  w::event resume;
  auto body = [&](w::scope& s) -> w::task<> {
    auto runs = [&](int who) {
      std::printf("3: task %d started\n", who);
      w::await(resume.wait());
      std::printf("3: task %d resumed\n", who);
    };
    auto first = tasks.go(s, {.limit = 5s}, runs, 1);
    auto second = tasks.go(s, {}, runs, 2);
    tasks.request_stop(second.id, {.reason = "killed"});  // libcopp: kill(id)
    const auto how = co_await tasks.wait(second.id);
    if (!how || how == w::work_end::stopped) std::puts("3: task 2 is killed");
    resume.set();  // libcopp: resume(id)
    static_cast<void>(co_await tasks.wait(first.id));
  };
  co_await w::with_scope(body);
}

// 4. stack_pool: stacks come back, and are used again.
void on_stacks_of_a_pool() {
  w::stack_pool stacks;
  auto say = [&] {
    const w::stack_pool_stats now = stacks.stats();
    std::printf("4: %zu in use, %zu free\n", now.in_use, now.idle);
  };
  say();
  for (int i = 0; i != 2; ++i) {
    w::coroutine<void()> one{{.pool = &stacks}, [](auto& yield) { yield(); }};
    one.resume();
    say();
  }
  say();
}

// 5. task::then and await_task: what one gives is what the next gets.
int first_of_three() {
  std::puts("5: the first runs, and yields");
  w::this_fiber::yield();
  std::puts("5: the first is resumed");
  return 128;
}

w::task<> one_after_another() {
  auto body = [](w::scope& s) -> w::task<> {
    w::fork<int> first = s.go(first_of_three);
    w::fork<int> second = s.go([&] {
      const int code = w::await(first);  // libcopp: await_task(first)
      std::printf("5: the second gets %d\n", code);
      return code + 1;
    });
    auto third = [](int code) { std::printf("5: the third gets %d\n", code); };
    auto last = std::move(second) | w::then(third);  // libcopp: second->then(third)
    co_await std::move(last);
  };
  co_await w::with_scope(body);
}

// 6. callable_future: a task<T>.
w::task<int> with_int_result() { co_return 123; }

w::task<> callables() {
  co_await w::yield();
  const int result = co_await with_int_result();
  std::printf("6: the result is %d\n", result);
}

int main() {
  by_hand();
  w::sync_wait(in_a_scope());
  w::sync_wait(by_number());
  on_stacks_of_a_pool();
  w::sync_wait(one_after_another());
  w::sync_wait(callables());
}
