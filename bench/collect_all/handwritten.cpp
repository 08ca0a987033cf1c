// Starts every chain on the calling thread and counts them down: each chain's continuation is one and the same coroutine,
// which goes on with the parent when the last one has ended. The chains are not elided: 5000 frames of 2.5 KiB, each with
// fifty levels in it, cost more than small ones from a cache.
#include "workload.hpp"

#include "../harness/handwritten.hpp"
#include "../harness/harness.hpp"

namespace {

/// Counts one down each time it is resumed.
class countdown {
 public:
  struct promise_type : handwritten::promise_base {
    std::size_t left = 0;

    countdown get_return_object() noexcept { return countdown{handle::from_promise(*this)}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };

  using handle = std::coroutine_handle<promise_type>;

  countdown(countdown&&) = delete;
  ~countdown() { frame_.destroy(); }

  handle frame() const noexcept { return frame_; }

 private:
  explicit countdown(handle frame) noexcept : frame_{frame} {}

  handle frame_;
};

/// Suspends; goes on with the parent if nothing is left.
struct one_less {
  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(countdown::handle self) const noexcept {
    auto& promise = self.promise();
    return --promise.left == 0 ? promise.continuation : std::noop_coroutine();
  }
  void await_resume() const noexcept {}
};

countdown count_down() {
  for (;;) co_await one_less{};
}

/// Starts all tasks; resumes the awaiting one when they have ended.
class all_ended {
 public:
  all_ended(std::vector<handwritten::framed_task<int>>& tasks, handwritten::root& owner)
      : tasks_{tasks}, owner_{owner} {}

  bool await_ready() const noexcept { return tasks_.empty(); }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> parent) {
    const auto counter = counter_.frame();
    counter.promise().left = tasks_.size() + 1;  // one for us, lest the parent goes on while we still start tasks
    counter.promise().continuation = parent;
    for (const auto& task : tasks_) task.start(owner_, counter);
    return counter;
  }
  void await_resume() const noexcept {}

 private:
  std::vector<handwritten::framed_task<int>>& tasks_;
  handwritten::root& owner_;
  countdown counter_ = count_down();
};

handwritten::task<long> collect() {
  auto chains = bench::make_chains<handwritten::framed_task>();
  handwritten::root owner;
  co_await all_ended{chains, owner};

  long sum = 0;
  for (const auto& chain : chains) sum += chain.take();
  co_return sum;
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(1, collect_all_result, [] { return handwritten::run(collect()); });
}
