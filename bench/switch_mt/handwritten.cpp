// The limit: a ring of handles for each thread, where what yields goes behind the others. Nobody takes from another's, and
// nothing wakes, so it is good for tasks that are dealt out evenly and all do the same.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <atomic>
#include <coroutine>
#include <exception>
#include <thread>
#include <vector>

namespace {

class ring {
 public:
  explicit ring(std::size_t room) : slots_(room) {}
  void push(std::coroutine_handle<> task) noexcept {
    slots_[end_] = task;
    end_ = end_ + 1 == slots_.size() ? 0 : end_ + 1;
    ++count_;
  }
  void run() {
    while (count_ != 0) {
      const auto next = slots_[begin_];
      begin_ = begin_ + 1 == slots_.size() ? 0 : begin_ + 1;
      --count_;
      next.resume();
    }
  }

 private:
  std::vector<std::coroutine_handle<>> slots_;
  std::size_t begin_ = 0, end_ = 0, count_ = 0;
};

struct yielding {
  struct promise_type {
    yielding get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
  std::coroutine_handle<> self;
};

struct behind_the_others {
  ring& in;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> self) const noexcept { in.push(self); }
  void await_resume() const noexcept {}
};

yielding yields(ring& in, std::size_t& switches) {
  for (std::size_t i = 0; i != bench::switch_rounds; ++i) co_await behind_the_others{in};
  switches += bench::switch_rounds;
}

}  // namespace

void bench::run(bench::state& state) {
  const std::size_t threads = threads_of(state.size()), coroutines = coroutines_of(state.size());
  const std::size_t switches = coroutines * switch_rounds;
  state.measure(switches, switches, [&] {
    std::atomic<std::size_t> switched{0};
    std::vector<std::jthread> all;
    for (std::size_t which = 0; which != threads; ++which)
      all.emplace_back([&, which] {
        ring own{coroutines};
        std::size_t here = 0;
        for (std::size_t i = which; i < coroutines; i += threads) own.push(yields(own, here).self);
        own.run();
        switched.fetch_add(here, std::memory_order_relaxed);
      });
    all.clear();
    return switched.load();
  });
}
