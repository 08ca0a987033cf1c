// Why a root ends stopped that nobody has told to stop: a part of it was, which had a stop of its own.
//
// A scope, a fork or the children of a join or group may be told to stop by themselves. Who awaits such a part ends stopped, too.
// Where its frames begin to be destroyed, the wait that has ended so is asked for the causes (wait_type::why), and they are noted
// for the thread (core/end_causes.hpp in src/). At the end of the root whoever waits for it takes them over: the thread in
// sync_wait(), the scope of a fork, the join or group of a child. So what goes on without a stop pays nothing.
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <weft/stop.hpp>

namespace weft::detail {

class root;

/// Room for a cause, which is there once it was put.
union cause_room {
  cause_room() noexcept {}
  void put(const stop_cause& one) noexcept { ::new (&it) stop_cause{one}; }
  stop_cause it;
};

/// The causes of one end, the nearest first, and no more than the first few.
class cause_list {
 public:
  cause_list() noexcept {}

  /// Begins anew; null: of nobody.
  void begin(const root* of) noexcept {
    of_ = of;
    count_ = 0;
  }
  void add(const stop_cause& one) noexcept {
    if (count_ != most) all_[count_++].put(one);
  }

  const root* of() const noexcept { return of_; }
  std::span<const stop_cause> all() const noexcept { return {&all_[0].it, count_}; }
  /// None, of another root than this one.
  std::span<const stop_cause> of_root(const root& self) const noexcept {
    return of_ == &self ? all() : std::span<const stop_cause>{};
  }

 private:
  static constexpr std::size_t most = 4;
  static_assert(sizeof(cause_room) == sizeof(stop_cause));

  const root* of_ = nullptr;
  std::size_t count_ = 0;
  cause_room all_[most];
};

}  // namespace weft::detail
