// What has held up workers: told by the watchdog, on its thread, kept for whoever asks, and written to stderr.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>
#include <weft/watchdog.hpp>

namespace weft::detail {

class observed_stalls {
 public:
  /// Begins to watch, for stalls if `after` is not 0, and to sample. Each stall makes the eventfd `wakes` readable, as long as this
  /// lives. Throws error, also where the program has a watchdog of its own.
  observed_stalls(std::chrono::milliseconds after, unsigned samples_a_second, int wakes);
  observed_stalls(const observed_stalls&) = delete;

  /// The last ones, as an array of JSON.
  std::string json() const;
  /// Those that were not taken yet, each an object of JSON.
  std::vector<std::string> take_new();
  std::uint64_t count() const noexcept { return dog_.stats().stalls; }

 private:
  static constexpr std::size_t most = 50;  // are kept, and of new ones

  static void came(const stall& what, void* with);

  const int wakes_;
  mutable std::mutex lock_;  // of the following two
  std::deque<std::string> last_;
  std::vector<std::string> new_;
  watchdog dog_;  // the last one: it calls came()
};

}  // namespace weft::detail
