// What the models are run with. A scenario is a relacy test suite; it is run in every execution where that takes seconds,
// else in every execution with few switches of thread, and in many random ones. At length, those are a million at least.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <sstream>
#include <string>
#include <weft/detail/base/config.hpp>

#include "relacy.hpp"

// relacy keeps its own memory, and lacks these.
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
void operator delete[](void* memory, std::size_t) noexcept { operator delete[](memory); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return operator new[](size); }

// What the library has besides.
extern "C" const char WEFT_ABI_SYMBOL = 0;
namespace weft::detail {
void fail(const char* sentence) noexcept {
  std::fprintf(stderr, "weft: %s\n", sentence);
  std::abort();
}
void fail_thrown(const char* sentence) noexcept { fail(sentence); }
}  // namespace weft::detail

namespace model {

template <class Scenario>
void check(const char* name, const char* scheduler, rl::test_params params) {
  std::ostringstream said;
  params.output_stream = params.progress_stream = &said;
  const bool good = rl::simulate<Scenario>(params);
  std::printf("%-28s %-10s %9llu executions  %s\n", name, scheduler,
              static_cast<unsigned long long>(params.stop_iteration), good ? "ok" : "FAILED");
  if (good) return;
  std::puts(said.str().c_str());  // with each thread's last steps
  std::exit(1);                   // one is enough
}

/// How many random executions at least; 0: as many as each scenario says, for which there is time with each change.
/// WEFT_MODEL_EXECUTIONS, which `./dev test --models` sets.
inline rl::iteration_t at_length() {
  const char* const wanted = std::getenv("WEFT_MODEL_EXECUTIONS");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 0;
}

/// Many random executions: for scenarios of which one can't have all, with however few switches. Beside the other tests,
/// which set WEFT_MODEL_SHORT, a tenth of them.
template <class Scenario>
void check_some(const char* name, rl::iteration_t count = 100'000) {
  rl::test_params params;
  if (std::getenv("WEFT_MODEL_SHORT") != nullptr) count /= 10;
  params.execution_depth_limit = 10'000;
  params.search_type = rl::sched_random;
  params.iteration_count = std::max(count, at_length());
  check<Scenario>(name, "random", params);
}

/// Every execution with at most `switches` switches of thread that nobody had to make, and so many random ones.
template <class Scenario>
void check(const char* name, unsigned switches, rl::iteration_t count = 100'000, unsigned switches_at_length = 0) {
  rl::test_params params;
  params.execution_depth_limit = 10'000;
  params.search_type = rl::sched_bound;
  params.context_bound = at_length() != 0 ? std::max(switches, switches_at_length) : switches;
  check<Scenario>(name, ("bound " + std::to_string(params.context_bound)).c_str(), params);
  check_some<Scenario>(name, count);
}

/// Every execution.
template <class Scenario>
void check_all(const char* name) {
  rl::test_params params;
  params.execution_depth_limit = 10'000;
  params.search_type = rl::sched_full;
  check<Scenario>(name, "full", params);
}

}  // namespace model
