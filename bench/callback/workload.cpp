// The C library of the callback workload: a file of its own, so that no optimizer sees through it.
#include "workload.hpp"

extern "C" void bench_increment(std::uint64_t value, bench::bench_callback done, void* context) noexcept {
  done(context, value + 1);
}
