// What the objects of weft are where one thing is done at a time: the Models of support/history.hpp. An operation that gave
// up, for it was stopped or out of time, has no effect on any.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "support/history.hpp"

namespace test {

// ---- channels -------------------------------------------------------------------------------------------------------------

struct channel_operation {
  enum class kind { send, try_send, receive, try_receive, close, gave_up } what;
  int value = 0;    // sent or received; 0: nothing was received
  bool did = true;  // it was sent
};

struct channel_model {
  static constexpr std::size_t unbounded = std::numeric_limits<std::size_t>::max();

  std::size_t capacity;  // not 0
  std::deque<int> values{};
  bool closed = false;

  auto operator<=>(const channel_model&) const = default;

  bool is_full() const { return values.size() == capacity; }
  bool apply(const channel_operation& one) {
    using kind = channel_operation::kind;
    switch (one.what) {
      case kind::send:
      case kind::try_send: {
        if (!one.did) return closed || (is_full() && one.what == kind::try_send);
        if (closed || is_full()) return false;
        values.push_back(one.value);
        return true;
      }
      case kind::receive:
      case kind::try_receive:
        if (one.value == 0) return values.empty() && (closed || one.what == kind::try_receive);
        if (values.empty() || values.front() != one.value) return false;
        values.pop_front();
        return true;
      case kind::close: closed = true; return true;
      case kind::gave_up: return true;
    }
    return false;
  }
};

// A rendezvous: a send and the receive of its value are one thing that both do, at a moment that both overlap. See meetings().
struct rendezvous_model {
  bool closed = false;

  auto operator<=>(const rendezvous_model&) const = default;

  bool apply(const channel_operation& one) {
    using kind = channel_operation::kind;
    switch (one.what) {
      case kind::send:
      case kind::try_send: return one.did ? !closed : closed || one.what == kind::try_send;
      case kind::receive:
      case kind::try_receive: return closed || one.what == kind::try_receive;  // of nothing: the others were sent
      case kind::close: closed = true; return true;
      case kind::gave_up: return true;
    }
    return false;
  }
};

/// Of what was done at a rendezvous: each send and the receive of its value, as one, while both were under way. Nothing if
/// some value was not both sent and received, once, or two that met did not overlap. Each value is sent by one operation.
template <class Entry>
std::optional<std::vector<Entry>> meetings(const std::vector<Entry>& all) {
  using kind = channel_operation::kind;
  std::vector<Entry> met;
  std::size_t received = 0, sent = 0;
  for (const Entry& one : all) {
    const bool sends = one.what.what == kind::send || one.what.what == kind::try_send;
    const bool receives = one.what.what == kind::receive || one.what.what == kind::try_receive;
    if (receives && one.what.value != 0) {
      ++received;
    } else if (!sends || !one.what.did) {
      met.push_back(one);
    } else {
      ++sent;
      const auto other = std::ranges::find_if(all, [&](const Entry& two) {
        return (two.what.what == kind::receive || two.what.what == kind::try_receive) &&
               two.what.value == one.what.value;
      });
      if (other == all.end()) return std::nullopt;
      met.push_back({one.what, std::max(one.called, other->called), std::min(one.returned, other->returned)});
      if (met.back().called > met.back().returned) return std::nullopt;
    }
  }
  if (sent != received) return std::nullopt;
  return met;
}

// ---- a select over two channels -------------------------------------------------------------------------------------------

// One case for each of them. A close is of `chosen`.
struct select_operation {
  static constexpr std::size_t neither = 2;  // it had `otherwise`

  enum class kind { select, close, gave_up } what = kind::select;
  std::array<bool, 2> sends{};  // else it receives
  std::size_t chosen = neither;
  int value = 0;    // as in a channel_operation
  bool did = true;  // as there
};

struct two_channels_model {
  std::array<channel_model, 2> each;

  auto operator<=>(const two_channels_model&) const = default;

  bool apply(const select_operation& one) {
    using kind = channel_operation::kind;
    if (one.what == select_operation::kind::gave_up) return true;
    if (one.what == select_operation::kind::close) return each[one.chosen].apply({kind::close});
    if (one.chosen != select_operation::neither)
      return each[one.chosen].apply({one.sends[one.chosen] ? kind::send : kind::receive, one.value, one.did});
    for (std::size_t i = 0; i != 2; ++i)
      if (each[i].closed || (one.sends[i] ? !each[i].is_full() : !each[i].values.empty())) return false;
    return true;
  }
};

// ---- what is taken and given back -------------------------------------------------------------------------------------------

struct mutex_operation {
  enum class kind { lock, try_lock, unlock, gave_up } what;
  bool did = true;
};

struct mutex_model {
  bool held = false;

  auto operator<=>(const mutex_model&) const = default;

  bool apply(const mutex_operation& one) {
    switch (one.what) {
      case mutex_operation::kind::lock:
      case mutex_operation::kind::try_lock:
        if (!one.did) return held && one.what == mutex_operation::kind::try_lock;
        if (held) return false;
        held = true;
        return true;
      case mutex_operation::kind::unlock:
        if (!held) return false;
        held = false;
        return true;
      case mutex_operation::kind::gave_up: return true;
    }
    return false;
  }
};

struct semaphore_operation {
  enum class kind { acquire, try_acquire, release, gave_up } what;
  std::size_t count = 1;
  bool did = true;
};

struct semaphore_model {
  std::size_t all, largest;  // permits, and how many of them somebody may wait for
  std::size_t available = all;

  auto operator<=>(const semaphore_model&) const = default;

  bool apply(const semaphore_operation& one) {
    switch (one.what) {
      case semaphore_operation::kind::acquire:
      case semaphore_operation::kind::try_acquire:
        // A try does not overtake, and whoever waits wants more than there are.
        if (!one.did) return one.what == semaphore_operation::kind::try_acquire && available < largest;
        if (available < one.count) return false;
        available -= one.count;
        return true;
      case semaphore_operation::kind::release: available += one.count; return available <= all;
      case semaphore_operation::kind::gave_up: return true;
    }
    return false;
  }
};

struct shared_mutex_operation {
  enum class kind { take, try_take, upgrade, downgrade, give_back, gave_up } what;
  enum class mode { shared, upgradable, alone } how = mode::shared;  // a downgrade: from this one
  bool did = true;
};

struct shared_mutex_model {
  std::size_t sharing = 0;
  bool upgradable = false, alone = false;

  auto operator<=>(const shared_mutex_model&) const = default;

  bool apply(const shared_mutex_operation& one) {
    using kind = shared_mutex_operation::kind;
    switch (one.what) {
      case kind::take:
      case kind::try_take:
        // A try does not overtake, and nobody waits for one that nobody has.
        if (!one.did) return one.what == kind::try_take && (alone || upgradable || sharing != 0);
        return take(one.how);
      case kind::upgrade:
        if (!upgradable || sharing != 0) return false;
        upgradable = false;
        alone = true;
        return true;
      case kind::downgrade: return give_back(one.how) && take(mode::shared);
      case kind::give_back: return give_back(one.how);
      case kind::gave_up: return true;
    }
    return false;
  }

 private:
  using mode = shared_mutex_operation::mode;
  bool take(mode how) {
    if (alone || (how == mode::alone && sharing != 0) || (how != mode::shared && upgradable)) return false;
    if (how == mode::shared) ++sharing;
    if (how == mode::upgradable) upgradable = true;
    if (how == mode::alone) alone = true;
    return true;
  }
  bool give_back(mode how) {
    if (how == mode::shared) return sharing-- != 0;
    return std::exchange(how == mode::upgradable ? upgradable : alone, false);
  }
};

}  // namespace test
