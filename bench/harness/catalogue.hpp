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
  std::size_t size = 0;                ///< what the program gets as --size
  std::string label{};                 ///< "1 M deep"; empty where a workload has one shape only
  bool headline = true;                ///< measured in a quick run, too
  bool pinned = true;                  ///< to one core: it has one thread that works
  bool smoke = true;                   ///< in a smoke run, too: it needs neither gigabytes nor a new kernel
  std::string_view name{};             ///< it can be asked for alone by that; mostly empty
  std::vector<std::string> options{};  ///< what else the program gets, where that was asked for
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
  /// Its programs are told --rate, how many items there are in a second: the same for all libraries, see pace() in measure.cpp.
  bool paced = false;
  bool size_is_threads = false;                ///< and nothing else: more than two a processor are refused
  std::vector<std::string_view> parameters{};  ///< what they can be told besides the size: "kib" is --kib
};

std::span<const workload> catalogue();

/// nullptr: there is no such workload.
const workload* find_workload(std::string_view name);

/// The shapes of a workload that `words` ask for, all where there are none. A word is a workload's name, or that of one of its
/// shapes; numbers after a workload's take the place of its shapes: "switch_30k", "30000", "1000", "64".
std::vector<shape> shapes_asked_for(const workload& work, const std::vector<std::string>& words);

/// Fails  with std::runtime_error, in a sentence, where a word names nothing, or has more numbers than are taken.
void check_words(const std::vector<std::string>& words);

/// "N SWITCHES KIB": the numbers that can come after a workload's name.
std::string numbers_taken(const workload& work);

/// "call_depth, 1 M deep"
std::string row_title(const workload& work, const shape& form);

}  // namespace bench
