// callback: awaiting a C function that reports through a callback. One item is one await; the callback comes before
// the function returns, which is the cheapest case and the one where a bridge can get its order wrong.
#pragma once

#include <cstdint>

namespace bench {

extern "C" {
/// How the C library reports.
using bench_callback = void (*)(void* context, std::uint64_t result);

/// Calls done(context, value + 1), at once. Defined in workload.cpp, out of the optimizer's sight.
void bench_increment(std::uint64_t value, bench_callback done, void* context) noexcept;
}

inline constexpr std::uint64_t callback_awaits = 1000;

/// `increment(value)` is the library's awaitable around bench_increment. The result is callback_awaits.
template <template <class> class Task, class Increment>
Task<std::uint64_t> count_by_callback(Increment increment) {
  std::uint64_t value = 0;
  for (std::uint64_t i = 0; i != callback_awaits; ++i) value = co_await increment(value);
  co_return value;
}

}  // namespace bench
