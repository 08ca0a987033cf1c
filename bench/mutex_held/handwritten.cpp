// The limit: see handwritten_lock.hpp. Who yields gets in a line that is run in order.
#include "workload.hpp"

#include "../harness/handwritten_lock.hpp"
#include "../harness/handwritten_turns.hpp"

#include <vector>

namespace {

using handwritten::coroutine;

// Who can run, each linked by its own frame.
class line {
 public:
  auto yield() noexcept { return place{*this}; }

  void run() noexcept {
    while (first_ != nullptr) std::exchange(first_, first_->next)->self.resume();
  }

 private:
  struct place {
    line& in;
    place* next = nullptr;
    std::coroutine_handle<> self{};
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> yields) noexcept {
      self = yields;
      (in.first_ == nullptr ? in.first_ : in.last_->next) = this;
      in.last_ = this;
    }
    void await_resume() const noexcept {}
  };

  place* first_ = nullptr;
  place* last_ = nullptr;  // of those in line
};

coroutine take_turns(line& all, handwritten::lock& turn, std::size_t& number, std::size_t times) {
  for (std::size_t i = 0; i != times; ++i) {
    co_await turn.take();
    const std::size_t before = number;
    co_await all.yield();
    number = before + 1;
    turn.give_back();
  }
}

std::size_t all(std::size_t contenders) {
  line ready;
  handwritten::lock turn;
  std::size_t number = 0;
  std::vector<coroutine> tasks;
  for (std::size_t i = 0; i != contenders; ++i)
    tasks.push_back(take_turns(ready, turn, number, bench::held_locks / contenders));
  for (auto& one : tasks) one.self.resume();
  ready.run();
  return number;
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(held_locks, held_locks, [&] { return all(state.size()); });
}
