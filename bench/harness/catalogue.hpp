// What the bench measures: each workload's shapes, units, and place in a short run. A new workload is a folder with
// adapters and one entry here.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// What a workload's figure is.
enum class metric {
  time,         ///< of an item, measured inside the program
  allocations,  ///< and bytes of an item: exact, so one round is enough
  command,      ///< wall time and memory of a whole command (a compiler)
};

/// One row of the table: a workload at one size.
struct shape {
  std::size_t size = 0;      ///< what the program gets as --size
  std::string_view label{};  ///< "1 M deep"; empty where a workload has one shape only
  bool headline = true;      ///< measured in a quick run, too
  bool pinned = true;        ///< to one core: it has one thread that works
  bool smoke = true;         ///< in a smoke run, too: it needs neither gigabytes nor a new kernel
};

struct workload {
  std::string_view name;   ///< its folder
  std::string_view about;  ///< one line for people
  std::string_view unit;   ///< "ns a level"
  double scale = 1;        ///< from nanoseconds to that unit
  metric kind = metric::time;
  double weight = 0.5;  ///< its share of the time, for each shape and library
  std::vector<shape> shapes{{}};
  bool longer_in_full = false;  ///< its programs are told of a full run
};

std::span<const workload> catalogue();

/// nullptr: there is no such workload.
const workload* find_workload(std::string_view name);

/// "call_depth, 1 M deep"
std::string row_title(const workload& work, const shape& form);

}  // namespace bench
