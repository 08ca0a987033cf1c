// The limit: a recursive function, on a thread whose stack is large enough for the deepest row.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <pthread.h>

#include <exception>

namespace {

[[gnu::noinline]] std::uint64_t plain_sum(std::uint64_t n) {
  if (n == 0) return 0;
  std::uint64_t below = plain_sum(n - 1);
  asm volatile("" : "+r"(below));  // else it becomes a loop
  return n + below;
}

struct round {
  bench::state& state;
  std::exception_ptr failure;
};

void* run_deep(void* context) {
  auto& [state, failure] = *static_cast<round*>(context);
  try {
    const std::uint64_t depth = state.size();
    state.measure(depth, bench::sum_result(depth), [&] { return plain_sum(depth); });
  } catch (...) {
    failure = std::current_exception();
  }
  return nullptr;
}

}  // namespace

void bench::run(bench::state& state) {
  constexpr std::size_t stack_bytes = 256u << 20;
  round work{state, nullptr};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_t thread;
  state.verify(pthread_create(&thread, &attributes, &run_deep, &work) == 0, "no thread with a stack of 256 MiB");
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  if (work.failure) std::rethrow_exception(work.failure);
}
