// Stalls of workers: reported by the watchdog on its thread, kept for clients, and written to stderr.
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
  /// Starts a watchdog, for stalls if `after` is not 0, and for samples. While this lives, each stall makes the eventfd `wakes`
  /// readable. Throws error, also if the program has a watchdog of its own.
  observed_stalls(std::chrono::milliseconds after, unsigned samples_a_second, int wakes);
  observed_stalls(const observed_stalls&) = delete;

  /// The latest stalls, as a JSON array.
  std::string json() const;
  /// Takes the stalls that were not taken yet, each as a JSON object.
  std::vector<std::string> take_new();
  std::uint64_t count() const noexcept { return dog_.stats().stalls; }

 private:
  static constexpr std::size_t most = 50;  // of the latest ones, and of those not taken

  static void came(const stall& what, void* with);

  const int wakes_;
  mutable std::mutex lock_;  // guards the following two
  std::deque<std::string> last_;
  std::vector<std::string> new_;
  watchdog dog_;  // the last member: it calls came(), which uses the others
};

}  // namespace weft::detail
