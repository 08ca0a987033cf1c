// In the place of src/base/futex.hpp: a lock and a condition of relacy's, by which a sleeper that nobody wakes is found.
// They carry edges of their own, but only where somebody slept: without that the edges under test stand alone.
#pragma once

#include <chrono>
#include <weft/detail/base/atomic.hpp>

namespace weft::detail {

/// One for the program; a scenario makes it anew for each execution.
struct bed {
  rl::mutex lock;
  rl::condition_variable condition;
  static inline bed* all = nullptr;
};

class word_futex {
 public:
  explicit word_futex(const atomic<std::uint32_t>& word) noexcept : word_{&word} {}

  void wait(std::uint32_t expected, std::chrono::steady_clock::time_point) const {
    bed::all->lock.lock(RL_INFO);
    if (word_->load(std::memory_order_relaxed) == expected) bed::all->condition.wait(bed::all->lock, RL_INFO);
    bed::all->lock.unlock(RL_INFO);
  }
  void wake() const {
    bed::all->lock.lock(RL_INFO);
    bed::all->condition.notify_all(RL_INFO);
    bed::all->lock.unlock(RL_INFO);
  }

 private:
  const atomic<std::uint32_t>* word_;
};

class pointer_futex {
 public:
  template <class T>
  explicit pointer_futex(const atomic<T*>& word) noexcept
      : word_{&word}, load_{[](const void* any) -> const void* {
          return static_cast<const atomic<T*>*>(any)->load(std::memory_order_relaxed);
        }} {}

  void wait(const void* expected, std::chrono::milliseconds) const {
    bed::all->lock.lock(RL_INFO);
    if (load_(word_) == expected) bed::all->condition.wait(bed::all->lock, RL_INFO);
    bed::all->lock.unlock(RL_INFO);
  }
  void wake() const {
    bed::all->lock.lock(RL_INFO);
    bed::all->condition.notify_all(RL_INFO);
    bed::all->lock.unlock(RL_INFO);
  }

 private:
  const void* word_;
  const void* (*load_)(const void*);
};

}  // namespace weft::detail
