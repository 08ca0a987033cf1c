// The limit: two coroutines in frames of their own, of which one is in the line of what it waits for and the other returns
// its value. The first that ends decides; a loser is taken out of its line and its frame destroyed, and then who awaits them
// goes on. One thread, nothing locked; no cause, env, async stack or executor.
#include "workload.hpp"

#include "../harness/handwritten.hpp"

#include <coroutine>
#include <exception>

namespace {

struct link {
  link* next = this;
  link* before = this;

  void join(link& line) noexcept {
    next = line.next;
    before = &line;
    next->before = this;
    line.next = this;
  }
  void leave() noexcept {
    before->next = next;
    next->before = before;
  }
};

class racer {
 public:
  struct promise_type {
    std::size_t value = 0;
    std::exception_ptr failure;
    link* waits_in = nullptr;  // what a stop takes it out of

    racer get_return_object() noexcept {
      void* frame = handle::from_promise(*this).address();
      asm volatile("" : "+r"(frame));  // now clang can't tell whose frame is destroyed, and so makes one
      return racer{handle::from_address(frame)};
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    void return_value(std::size_t given) noexcept { value = given; }
    void unhandled_exception() noexcept { failure = std::current_exception(); }

    static void* operator new(std::size_t bytes) { return handwritten::frame_cache::take(bytes); }
    static void operator delete(void* memory, std::size_t bytes) noexcept {
      handwritten::frame_cache::give(memory, bytes);
    }
  };
  using handle = std::coroutine_handle<promise_type>;

  racer(const racer&) = delete;
  ~racer() { frame_.destroy(); }

  /// Runs it up to its first wait. True: it has ended.
  bool start() noexcept {
    frame_.resume();
    return frame_.done();
  }
  void stop() noexcept { frame_.promise().waits_in->leave(); }
  std::size_t value() const {
    if (frame_.promise().failure) [[unlikely]]
      std::rethrow_exception(frame_.promise().failure);
    return frame_.promise().value;
  }

 private:
  explicit racer(handle frame) noexcept : frame_{frame} {}
  handle frame_;
};

struct wait_in_line : link {
  link& line;
  explicit wait_in_line(link& in) noexcept : line{in} {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(racer::handle self) noexcept {
    join(line);
    self.promise().waits_in = this;
  }
  void await_resume() const noexcept {}
};

struct outcome {
  std::size_t index, value;
};

// Of those that all run here, so somebody has ended when the last one has started.
outcome when_any(racer first, racer second) {
  if (first.start()) return {0, first.value()};
  if (!second.start()) std::terminate();
  first.stop();
  return {1, second.value()};
}

racer slow(link& never) {
  co_await wait_in_line{never};
  co_return 0;
}
racer quick() { co_return 1; }

std::size_t race() {
  link never;
  std::size_t won = 0;
  for (std::size_t i = 0; i != bench::races; ++i) won += when_any(slow(never), quick()).index;
  return won;
}

}  // namespace

void bench::run(bench::state& state) { state.measure(races, races, race); }
