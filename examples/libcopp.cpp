// The programs of libcopp's manual (its sample_readme_1 to _10; _11 is about Windows) in weft: a coroutine, a task, tasks
// found by their number, a pool of stacks, one task after another, futures, and C++20 coroutines.
#include <chrono>
#include <cstdio>
#include <list>
#include <optional>
#include <string>
#include <utility>
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

// 3. task_manager: start, resume and kill by number; the first has a limit of a minute.
w::task<> by_number() {
  w::registry tasks;
  w::event resume;
  auto body = [&](w::scope& s) -> w::task<> {
    auto runs = [&](int who) {
      std::printf("3: task %d started\n", who);
      w::await(resume.wait());
      std::printf("3: task %d resumed\n", who);
    };
    auto first = tasks.go({.limit = 1min}, s, runs, 1);
    auto second = tasks.go(s, runs, 2);
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

// 6. future_t, which a context polls when it was woken: the end that is waited for of a promise.
w::task<> woken_by_who_sets() {
  w::promise<int> response;
  w::future<int> request = response.get_future();
  std::printf("6: %s\n", request.is_ready() ? "is ready" : "is not ready");
  response.set_value(200);  // libcopp: poll_data(), wake(), and poll() again
  std::printf("6: response code %d\n", co_await std::move(request));
}

// 7. task_t<T> of C++20, those with a waker of their own, too: a task<T>. Who has the answer keeps a callback, and no waker.
w::task<int> with_int_result() { co_return 123; }
w::task<> with_void_result() { co_return; }

w::task<> callables() {
  std::list<w::callback<int>> waiting;
  auto answers = [&]() -> w::task<> {
    auto keep = [&](w::callback<int> done) { waiting.push_back(done); };
    std::printf("7: from outside: %d\n", co_await w::from_callback<int>(keep));
  };
  auto body = [&](w::scope& s) -> w::task<> {
    s.fork(answers);
    std::printf("7: the result is %d\n", co_await with_int_result());
    co_await with_void_result();
    waiting.front()(678);
  };
  co_await w::with_scope(body);
}

// 8. generator_t: awaits what something else makes ready, once; that is from_callback.
struct message {
  std::string response;
  int code;
};

w::task<> answered() {
  std::list<w::callback<message>> executor;
  auto waits = [&]() -> w::task<int> {
    co_await with_void_result();
    auto keep = [&](w::callback<message> done) { executor.push_back(done); };
    const message got = co_await w::from_callback<message>(keep);
    std::printf("8: response %s\n", got.response.c_str());
    co_return got.code;
  };
  auto body = [&](w::scope& s) -> w::task<> {
    w::fork<int> code = s.fork(waits);
    std::printf("8: %s\n", code.done() ? "done" : "waits");
    executor.front()(message{"Hello World!", 200});
    std::printf("8: code %d\n", co_await std::move(code));
  };
  co_await w::with_scope(body);
}

// 9. A time-out of what is awaited, and of the task that awaits it: timeout(), around either. What fails has a code.
w::task<int> never_answered() {
  std::optional<w::callback<int>> kept;
  auto keep = [&](w::callback<int> done) { kept = done; };
  auto give_up = [&] { kept->set_stopped(); };
  co_return co_await w::from_callback<int>(keep, give_up);
}

w::task<> in_time() {
  const auto awaited = co_await w::as_result(w::timeout(1ms, never_answered()));
  std::printf("9: the awaited: %s\n", awaited.error() == w::errc::timed_out ? "timed out" : "answered");
  auto twice = []() -> w::task<int> { co_return co_await never_answered() + co_await never_answered(); };
  const auto task = co_await w::as_result(w::timeout(1ms, twice()));
  std::printf("9: the task: %s\n", task.error() == w::errc::timed_out ? "timed out" : "answered");
}

// 10. co_await of a cotask::task in a task_t: of a fiber's fork in a task. What resume() passed in comes through a channel.
w::task<> awaits_a_fiber() {
  w::channel<int> passed{1};
  auto body = [&](w::scope& s) -> w::task<> {
    w::fork<int> fiber = s.go([&] { return w::await(passed.receive()).value_or(234); });
    co_await passed.send(345);  // libcopp: resume(&res)
    std::printf("10: the fiber gave %d\n", co_await std::move(fiber));
  };
  co_await w::with_scope(body);
}

int main() {
  by_hand();
  w::sync_wait(in_a_scope());
  w::sync_wait(by_number());
  on_stacks_of_a_pool();
  w::sync_wait(one_after_another());
  w::sync_wait(woken_by_who_sets());
  w::sync_wait(callables());
  w::sync_wait(answered());
  w::sync_wait(in_time());
  w::sync_wait(awaits_a_fiber());
}
