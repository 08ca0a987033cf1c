// cache: what is run, and how it ends. See switches.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace bench {

inline constexpr std::size_t stack_of_each = std::size_t{64} << 10;

struct shape {
  std::size_t count, rounds;
  bool with_payload;
};

// At once: what unwinding 30,000 stacks takes would be most of the difference's noise.
[[noreturn]] inline void leave(const shape& of, std::uint64_t turns) {
  if (turns != of.count * of.rounds) std::fputs("bench_cache: not all took their turns\n", stderr);
  std::_Exit(turns == of.count * of.rounds ? 0 : 1);
}

/// Runs what is scheduled, and leaves; returns where there is no such kind. See scheduled.cpp.
void run_scheduled(std::string_view kind, const shape& of);

}  // namespace bench
