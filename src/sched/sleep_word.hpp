// Where a worker sleeps, in a word: nowhere, on this word, or in what the kernel watches for it (an io_uring, an epoll set),
// whose wait the waker ends by an eventfd.
//
//   worker  prepare(); fall_asleep(where); takes what others have put into its inbox; if that is nothing, sleeps there; rise()
//   waker   puts something into the inbox; wake()
//
// So either the worker finds it in the inbox, or it is woken: the word is changed by read-modify-writes alone, hence each sees
// the other's change, or is seen by it. A store in prepare() would take a wake() away without having seen what that was for.
#pragma once

#include <atomic>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>

#include "base/futex.hpp"
#include "sched/parker.hpp"

namespace weft::detail {

class sleep_word {
 public:
  enum place : std::uint32_t { awake, on_word, in_kernel, woken };

  /// By its worker: a wake() from here on is not lost.
  void prepare() noexcept { word_.exchange(awake, std::memory_order_relaxed); }  // it keeps the edge for fall_asleep()
  /// By its worker: from here on it is woken there. False: it was woken before.
  bool fall_asleep(place where) noexcept {
    std::uint32_t seen = awake;
    return word_.compare_exchange_strong(seen, where, std::memory_order_acquire,  // <- asked
                                         std::memory_order_relaxed);  // it looks into its inbox before it sleeps
  }
  /// By its worker, asleep on the word. May return at any time.
  void sleep_on_word(parker::time_point until) const noexcept { word_futex{word_}.wait(on_word, until); }
  /// By its worker, awake again: it need not be woken any more.
  void rise() noexcept { word_.exchange(awake, std::memory_order_relaxed); }  // as in prepare()

  /// Any thread. `interrupt` ends the wait in the kernel; the parker, which has the eventfd and this word, outlives the call.
  template <class Interrupt>
  void wake(Interrupt interrupt) noexcept {
    const word_futex sleeps_on{word_};
    const std::uint32_t before = word_.exchange(woken, std::memory_order_release);  // -> asked
    if (before == on_word) sleeps_on.wake();
    if (before == in_kernel) interrupt();
  }

  /// Any thread; over when it is read.
  bool is_asleep() const noexcept {
    const std::uint32_t now = word_.load(std::memory_order_relaxed);  // a hint
    return now == on_word || now == in_kernel;
  }

 private:
  //   edge asked  something was put into the worker's inbox  ->  the worker, which looks there before it sleeps
  atomic<std::uint32_t> word_{awake};
};

}  // namespace weft::detail
