// No model: as in world.hpp.
// A thread that requests stops, for sweeps with stops from another thread than the one under test.
#include <chrono>
#include <thread>

#include "test/world.hpp"

namespace weft::test::detail {

stopper::stopper() : thread_{[this] { run(); }} {}

stopper::~stopper() {
  while (busy()) std::this_thread::yield();
  state_.store(ending, std::memory_order_release);
  state_.notify_one();
  thread_.join();
}

void stopper::stop(void (*stop)(void*) noexcept, void* target, std::size_t late) noexcept {
  while (busy()) std::this_thread::yield();
  stop_ = stop;
  target_ = target;
  late_.store(late, std::memory_order_relaxed);  // published by the next line
  state_.store(asked, std::memory_order_release);
  state_.notify_one();
  // Returns once the stop has claimed a wait: the waiting task can't end before the stop has finished with that wait.
  for (;;) {
    const auto now = state_.load(std::memory_order_acquire);
    if (now == idle || (now == has_claimed && late_.load(std::memory_order_relaxed) <= 1)) break;
    std::this_thread::yield();
  }
  if (late != 0) return;
  const auto enough = std::chrono::steady_clock::now() + std::chrono::microseconds{100};
  while (busy() && std::chrono::steady_clock::now() < enough) std::this_thread::yield();
}

void stopper::claimed() noexcept {
  if (std::this_thread::get_id() != thread_.get_id()) return;
  std::size_t left = late_.load(std::memory_order_acquire);
  if (left > 1) {
    late_.store(left - 1, std::memory_order_relaxed);  // nobody else writes it before it is 1
    return;
  }
  state_.store(has_claimed, std::memory_order_release);
  const auto enough = std::chrono::steady_clock::now() + std::chrono::milliseconds{20};
  while (left == 1 && late_.load(std::memory_order_acquire) == 1 && std::chrono::steady_clock::now() < enough)
    std::this_thread::yield();
}

void stopper::run() noexcept {
  for (;;) {
    state_.wait(idle, std::memory_order_acquire);
    if (state_.load(std::memory_order_acquire) == ending) return;
    state_.store(begun, std::memory_order_release);
    stop_(target_);
    late_.store(0, std::memory_order_relaxed);  // published by the next line
    state_.store(idle, std::memory_order_release);
  }
}

}  // namespace weft::test::detail
