// The harness: what a benchmark program sees of the bench.
//
// An adapter is one file, bench/<workload>/<library>.cpp, that defines one function:
//
//     void bench::run(bench::state& state) {
//       state.measure(levels, expected, [] { return cppcoro::sync_wait(lazy_fn<cppcoro::task, levels>()); });
//     }
//
// The program itself (what is computed, and what must come out) stands in bench/<workload>/workload.hpp and is shared
// by all libraries. Each pair of workload and library becomes a process of its own, so that no library inherits
// another's heap, threads or branch history; one process is one round. main() is in main.cpp: it prints one line of
// JSON, and the driver does the rest.
//
// Rejected: all libraries in one program (the order of registration showed in the figures, and one crash ended it
// all); timing from outside (starting a process costs more than most rounds).
#pragma once

#include <ctime>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

/// A result that is not the expected one: the round is void, and the driver fails loudly.
class wrong_result : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The workload can't be run on this machine, for the reason that it says: no figure, and no failure either.
class not_here : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Makes the compiler believe that `value` is used, so that what computed it stays.
template <class Value>
inline void keep(const Value& value) noexcept {
  asm volatile("" : : "m"(value) : "memory");
}

/// One round of one workload.
class state {
 public:
  using clock = std::chrono::steady_clock;

  using options = std::map<std::string, std::size_t, std::less<>>;  // "--kib": 64

  state(std::size_t size, clock::duration warm_up, clock::duration budget, bool full = false, options given = {});

  /// The workload's parameter (a depth, a count); 0 where it has none.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// How long to measure, and for how long to run before that: for an adapter that doesn't use measure().
  [[nodiscard]] clock::duration budget() const noexcept { return budget_; }
  [[nodiscard]] clock::duration warm_up() const noexcept { return warm_up_; }

  /// In a full run: the workload at its own length, where a quick run has no time for that.
  [[nodiscard]] bool full() const noexcept { return full_; }

  /// What an option of the workload's own says, such as --kib; `otherwise` where it was not given.
  [[nodiscard]] std::size_t option(std::string_view name, std::size_t otherwise);

  /// One that was given, and that nobody has asked for; empty: there is none.
  [[nodiscard]] std::string unknown_option() const;

  /// The program that is to be measured, in a workload whose harness runs in a client; else empty. See net/client.hpp.
  [[nodiscard]] const std::string& server() const noexcept { return server_; }
  void set_server(std::string path) { server_ = std::move(path); }

  /// From now on an item's time is the processor time that another process takes for it, by that process's clock. The time
  /// that passes is reported besides, and as processor time that of both processes.
  void measure_process(clockid_t its_processor_time) noexcept { watched_ = its_processor_time; }

  /// A figure that is no time, instead of measure(): the round's.
  void measured(double figure);

  /// Times `body()` again and again until the round's time is used up.
  ///
  /// Each call does `items` units of work, or that part of one, and returns its result, which must equal `expected`, every
  /// time. The first part of the time warms up and finds out how many calls make a batch; the round's figure is the median
  /// batch. Where one call takes five seconds, it is the only one.
  template <class Result, class Body>
  void measure(double items, const Result& expected, Body&& body) {
    begin(items);
    while (const std::size_t calls = next_batch()) {
      bool right = true;
      start_clock();
      for (std::size_t i = 0; i != calls; ++i) {
        const auto result = body();
        keep(result);
        right &= result == expected;
      }
      stop_clock();
      end_batch(calls);
      verify(right);
    }
  }

  /// Times one call of `body()`, without a warm-up: for a program whose length was given.
  template <class Result, class Body>
  void measure_once(double items, const Result& expected, Body&& body) {
    begin(items);
    warm_ = true;
    start_clock();
    const auto result = body();
    keep(result);
    stop_clock();
    end_batch(1);
    verify(result == expected);
  }

  /// As measure(); each call gets something fresh from `prepare()`, which is made and goes outside the clock. For calls that
  /// take a millisecond, or the clock itself would show.
  template <class Result, class Prepare, class Body>
  void measure(double items, const Result& expected, Prepare&& prepare, Body&& body) {
    begin(items);
    while (const std::size_t calls = next_batch()) {
      bool right = true;
      for (std::size_t i = 0; i != calls; ++i) {
        auto with = prepare();
        start_clock();
        const auto result = body(with);
        keep(result);
        stop_clock();
        right &= result == expected;
      }
      end_batch(calls);
      verify(right);
    }
  }

  /// Ends the round with an error unless `right`.
  void verify(bool right, std::string_view what = "the workload's result is not the expected one") const {
    if (!right) throw wrong_result{std::string{what}};
  }

  /// Adds a figure that only this adapter knows, such as the bytes of a frame from a library's own cache.
  void report(std::string_view name, double value) { extra_.insert_or_assign(std::string{name}, value); }

  /// The round as one line of JSON.
  [[nodiscard]] std::string to_json() const;

 private:
  void begin(double items);
  std::size_t next_batch();
  void start_clock() noexcept;
  void stop_clock() noexcept;
  void end_batch(std::size_t calls);
  [[nodiscard]] clock::duration watched_time() const noexcept;

  std::size_t size_;
  bool full_;
  clock::duration warm_up_;
  clock::duration budget_;
  long own_rss_kib_;  // before the workload began
  options options_, unknown_options_;
  std::string server_;
  std::optional<clockid_t> watched_;

  double items_ = 0;                 // units of work in one call
  std::size_t calls_ = 1;            // calls in the next batch
  bool warm_ = false;                // true: batches count
  clock::time_point phase_start_{};  // of the warm-up, then of the measuring
  clock::time_point batch_start_{};
  clock::duration cpu_start_{};      // what all threads of the process had used then
  clock::duration watched_start_{};  // what the watched process had used then
  clock::duration batch_time_{};     // of the last batch, and of the one that runs so far
  clock::duration batch_cpu_{};
  clock::duration batch_watched_{};
  bool batch_ended_ = true;
  std::vector<double> batches_;  // ns an item
  std::vector<double> cpu_;      // the same, of processor time
  std::vector<double> wall_;     // the same, of time, where another process is watched
  double measured_items_ = 0;
  std::uint64_t allocations_ = 0;  // inside timed batches, where the program counts them
  std::uint64_t allocated_bytes_ = 0;
  std::uint64_t allocations_before_ = 0;
  std::uint64_t bytes_before_ = 0;
  std::map<std::string, double> extra_;
};

/// What every adapter defines.
void run(state& state);

}  // namespace bench
