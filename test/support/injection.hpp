// What system_calls.hpp and file_calls.hpp have in common: calls that fail when a test says so. `Call` is an enumeration, whose
// `none` is none of them; name_of() gives each a name.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

namespace test {

/// What comes of a call instead of an error number: it moves a byte at most, or a datagram of several.
inline constexpr int one_byte = -1;
/// It is as it would be, behind what the injection does meanwhile.
inline constexpr int meanwhile = -2;

/// What calls in a row come to: error numbers, `one_byte`, `meanwhile`, or 0, as they are.
template <class Call>
struct fault_of {
  static constexpr std::size_t most = 8;
  fault_of(Call where, std::initializer_list<int> what) : at{where} {
    for (const int one : what) results[count++] = one;
  }
  std::string to_string() const {
    std::string all = name_of(at);
    for (std::size_t i = 0; i != count; ++i)
      all += (i == 0 ? ": " : ", ") + std::string{results[i] == one_byte    ? "one byte"
                                                  : results[i] == meanwhile ? "meanwhile"
                                                  : results[i] == 0         ? "as it is"
                                                                            : ::strerrorname_np(results[i])};
    return all;
  }

  Call at;
  std::array<int, most> results{};
  std::size_t count = 0;
};

/// From now on to its end, calls fail: those of its kind from the one on that comes after `before` others. One at a time in a
/// process; the calls, on any thread.
template <class Call>
class injection_of {
 public:
  explicit injection_of(const fault_of<Call>& what, std::size_t before = 0, std::function<void()> does_meanwhile = {}) {
    now.does = std::move(does_meanwhile);
    for (std::size_t i = 0; i != what.results.size(); ++i) now.results[i] = what.results[i];
    now.count = what.count;
    now.before = before;
    now.seen = 0;
    for (std::atomic<int>& one : now.spared) one = 0;
    now.at.store(what.at, std::memory_order_release);  // -> who calls
  }
  injection_of(const injection_of&) = delete;
  ~injection_of() { now.at = Call::none; }

  /// Calls with that number are not counted, and don't fail.
  void spares(int number) const noexcept {  // NOLINT: of this one
    for (std::atomic<int>& one : now.spared)
      if (int none = 0; one.compare_exchange_strong(none, number + 1)) return;
  }
  /// How many of the results have been given so far.
  std::size_t struck() const noexcept {  // NOLINT: of this one
    const std::size_t seen = now.seen;
    return seen <= now.before ? 0 : std::min<std::size_t>(seen - now.before, now.count);
  }

  /// By a call: what it comes to; 0: it is as it would be.
  static int outcome_of(Call which, int number = -1) noexcept {
    if (now.at.load(std::memory_order_acquire) != which) return 0;  // <- the constructor
    for (const std::atomic<int>& one : now.spared)
      if (number >= 0 && one == number + 1) return 0;
    const std::size_t mine = now.seen.fetch_add(1);
    if (mine < now.before || mine - now.before >= now.count) return 0;
    const int result = now.results[mine - now.before];
    if (result != meanwhile) return result;
    now.does();
    return 0;
  }
  static void do_meanwhile() noexcept {
    if (now.does) now.does();
  }
  /// Whether the first of the results is to do that.
  static bool begins_meanwhile() noexcept { return now.results[0] == meanwhile; }

 private:
  // One thread writes it; a call of the library's own that is made meanwhile has the old or the new of each.
  struct state {
    std::atomic<Call> at{Call::none};
    std::array<std::atomic<int>, fault_of<Call>::most> results{};
    std::atomic<std::size_t> count{0}, before{0}, seen{0};
    std::array<std::atomic<int>, 8> spared{};  // one more than the number; 0: none
    std::function<void()> does;
  };
  static inline state now;
};

inline int fails_with(int error) noexcept {
  errno = error;
  return -1;
}

}  // namespace test
