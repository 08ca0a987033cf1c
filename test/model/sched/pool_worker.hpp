// In the place of src/sched/pool_worker.hpp: room for one job, which other threads may take.
#pragma once

#include <cstddef>
#include <weft/detail/base/atomic.hpp>
#include <weft/executor.hpp>

namespace weft::detail {

struct pool_worker {
  // As the deque's: what was written before a push is seen by who takes it.
  struct place {
    bool push(job& one) noexcept {  // false: it is full
      job* expected = nullptr;
      return job_.compare_exchange_strong(expected, &one, std::memory_order_release, std::memory_order_relaxed);
    }
    bool pop(const job& one) noexcept {
      job* expected = const_cast<job*>(&one);
      return job_.compare_exchange_strong(expected, nullptr, std::memory_order_relaxed, std::memory_order_relaxed);
    }
    bool pop_before_last(const job& one) noexcept { return pop(one); }
    template <class Change>
    bool change_before_last(const job& one, Change change) noexcept {
      if (!pop(one)) return false;
      change();
      job_.store(const_cast<job*>(&one), std::memory_order_release);
      return true;
    }
    bool pop_stored(const job&) noexcept { return false; }
    job* steal() noexcept { return job_.exchange(nullptr, std::memory_order_acquire); }
    std::size_t size() const noexcept { return job_.load(std::memory_order_relaxed) != nullptr ? 1000 : 0; }
    atomic<job*> job_{nullptr};
  };

  // Its thread's, which relacy sees.
  struct count {
    void add() noexcept { sum = sum + 1; }
    plain<unsigned> sum = 0;
  };

  place forks;
  count begun, ended;
  executor* home = nullptr;
  bool has_others = true;
  bool orders = true;  // so what is posted goes through its home

  bool shares(const executor*) const noexcept { return true; }
  bool runs(const executor*) const noexcept { return true; }
  void call() noexcept {}
  bool calls_for_one() const noexcept { return false; }
  void call_one() noexcept {}
  void post(job&) noexcept {}
  void post_behind(job&) noexcept {}
  bool offer(job& one) noexcept {
    forks.job_.store(&one, std::memory_order_release);
    return true;
  }
  bool offer_beyond(job&) noexcept { return false; }  // there is no memory
};

}  // namespace weft::detail
