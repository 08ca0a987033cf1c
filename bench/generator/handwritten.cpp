// The limit: a generator that keeps a pointer to the value and nothing else.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <coroutine>
#include <exception>
#include <iterator>
#include <memory>

namespace {

template <class T>
class generator {
 public:
  struct promise_type {
    const T* value = nullptr;

    generator get_return_object() noexcept { return generator{handle::from_promise(*this)}; }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    std::suspend_always yield_value(const T& next) noexcept {
      value = std::addressof(next);
      return {};
    }
    void return_void() const noexcept {}
    void unhandled_exception() const { throw; }  // out of resume(), to whoever iterates
  };

  using handle = std::coroutine_handle<promise_type>;

  struct iterator {
    handle frame;

    const T& operator*() const noexcept { return *frame.promise().value; }
    iterator& operator++() {
      frame.resume();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const noexcept { return frame.done(); }
  };

  generator(generator&&) = delete;
  ~generator() { frame_.destroy(); }

  iterator begin() const {
    frame_.resume();
    return {frame_};
  }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  explicit generator(handle frame) noexcept : frame_{frame} {}

  handle frame_;
};

}  // namespace

void bench::run(bench::state& state) {
  state.measure(generator_values, generator_result, [] { return sum_of(count_up<::generator>(generator_values)); });
}
