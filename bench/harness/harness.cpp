#include "harness.hpp"

#include "allocations.hpp"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t wanted_batches = 30;
constexpr std::size_t fewest_batches = 3;
constexpr auto shortest_batch = 200us;   // reading the clock must not show
constexpr auto too_long_to_repeat = 5s;  // the first call is the figure

double nanoseconds(state::clock::duration d) { return std::chrono::duration<double, std::nano>{d}.count(); }

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

state::clock::duration processor_time(clockid_t of = CLOCK_PROCESS_CPUTIME_ID) noexcept {
  timespec now{};
  ::clock_gettime(of, &now);
  return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

/// A line such as "VmHWM:  1234 kB" of /proc/self/status. Not getrusage: its maximum survives exec, so that a small
/// program would show the memory of the driver that started it.
long status_kib(std::string_view key) {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) return std::strtol(line.c_str() + key.size() + 1, nullptr, 10);
  return 0;
}

/// Which malloc this process runs on; several replace glibc's from outside.
std::string_view allocator_name() {
  std::ifstream maps{"/proc/self/maps"};
  for (std::string line; std::getline(maps, line);)
    for (const std::string_view name : {"tcmalloc", "jemalloc", "mimalloc"})
      if (line.find(name) != std::string::npos) return name;
  return "glibc";
}

}  // namespace

state::state(std::size_t size, clock::duration warm_up, clock::duration budget, bool full, options given)
    : size_{size},
      full_{full},
      warm_up_{warm_up},
      budget_{budget},
      own_rss_kib_{status_kib("VmRSS")},
      options_{std::move(given)},
      unknown_options_{options_} {}

std::size_t state::option(std::string_view name, std::size_t otherwise) {
  if (const auto known = unknown_options_.find(name); known != unknown_options_.end()) unknown_options_.erase(known);
  const auto given = options_.find(name);
  return given == options_.end() ? otherwise : given->second;
}

std::string state::unknown_option() const {
  return unknown_options_.empty() ? std::string{} : unknown_options_.begin()->first;
}

void state::begin(double items) {
  items_ = items;
  calls_ = 1;
  warm_ = false;
  batches_.clear();
  cpu_.clear();
  wall_.clear();
  measured_items_ = 0;
  allocations_ = allocated_bytes_ = 0;
  phase_start_ = clock::now();
}

std::size_t state::next_batch() {
  const auto elapsed = clock::now() - phase_start_;
  const bool first = batch_time_ == clock::duration{};
  if (!warm_ && !batches_.empty()) return 0;  // as end_batch() says
  if (!warm_) {
    if (!first) {
      const auto target = std::max<clock::duration>(budget_ / wanted_batches, shortest_batch);
      const double per_call = nanoseconds(batch_time_) / static_cast<double>(calls_);
      const double calls = nanoseconds(target) / std::max(per_call, 0.1);
      const double at_most = static_cast<double>(calls_) * 100;  // one short reading must not decide
      calls_ = static_cast<std::size_t>(std::clamp(calls, 1.0, at_most));
    }
    if (first || elapsed < warm_up_) return calls_;
    warm_ = true;
    phase_start_ = clock::now();
    return calls_;
  }
  if (elapsed >= budget_ && batches_.size() >= fewest_batches) return 0;
  return calls_;
}

void state::start_clock() noexcept {
  if (batch_ended_) batch_time_ = batch_cpu_ = batch_watched_ = {};
  batch_ended_ = false;
  allocations_before_ = allocation_count().calls;
  bytes_before_ = allocation_count().bytes;
  watched_start_ = watched_time();
  cpu_start_ = processor_time();
  batch_start_ = clock::now();
}

void state::stop_clock() noexcept {
  batch_time_ += clock::now() - batch_start_;
  batch_cpu_ += processor_time() - cpu_start_;
  batch_watched_ += watched_time() - watched_start_;
  if (!warm_) return;
  allocations_ += allocation_count().calls - allocations_before_;
  allocated_bytes_ += allocation_count().bytes - bytes_before_;
}

void state::end_batch(std::size_t calls) {
  batch_ended_ = true;
  batch_time_ = std::max<clock::duration>(batch_time_, 1ns);
  if (!warm_ && batch_time_ < too_long_to_repeat) return;
  const double items = static_cast<double>(calls) * items_;
  measured_items_ += items;
  if (watched_) {
    batches_.push_back(nanoseconds(batch_watched_) / items);
    wall_.push_back(nanoseconds(batch_time_) / items);
  } else {
    batches_.push_back(nanoseconds(batch_time_) / items);
  }
  cpu_.push_back(nanoseconds(batch_cpu_ + batch_watched_) / items);
}

void state::measured(double figure) {
  batches_.assign(1, figure);
  measured_items_ = 1;
}

state::clock::duration state::watched_time() const noexcept {
  return watched_ ? processor_time(*watched_) : clock::duration{};
}

std::string state::to_json() const {
  if (batches_.empty()) throw std::logic_error{"the adapter measured nothing"};
  std::ostringstream out;
  out.precision(std::numeric_limits<double>::digits10);
  out << "{\"ns\":" << median(batches_) << ",\"batches\":" << batches_.size() << ",\"items\":" << measured_items_
      << ",\"size\":" << size_ << ",\"peak_rss_kib\":" << status_kib("VmHWM") << ",\"start_rss_kib\":" << own_rss_kib_
      << ",\"allocator\":\"" << allocator_name() << '"';
  if (counts_allocations()) {
    out << ",\"allocations\":" << static_cast<double>(allocations_) / measured_items_
        << ",\"bytes\":" << static_cast<double>(allocated_bytes_) / measured_items_;
  }
  if (!cpu_.empty()) out << ",\"cpu_ns\":" << median(cpu_);
  out << ",\"extra\":{";
  const char* comma = "";
  if (!wall_.empty()) {
    out << "\"ns that passed\":" << median(wall_);
    comma = ",";
  }
  for (const auto& [name, value] : extra_) {
    out << comma << '"' << name << "\":" << value;
    comma = ",";
  }
  out << "}}";
  return out.str();
}

}  // namespace bench
