#include "workload.hpp"

#include <boost/coroutine2/coroutine.hpp>
#include <boost/coroutine2/pooled_fixedsize_stack.hpp>

#include <vector>

void bench::run(bench::state& state) {
  using coroutine = boost::coroutines2::coroutine<void>;
  using boost::coroutines2::pooled_fixedsize_stack;
  pooled_fixedsize_stack stacks{created_stack};
  std::vector<coroutine::push_type> all;  // which begins when it is first called
  all.reserve(state.size());
  measure_creation(state, [&](std::size_t count) {
    std::size_t ended = 0;
    for (std::size_t i = 0; i != count; ++i)
      all.emplace_back(pooled_fixedsize_stack{stacks}, [&](coroutine::pull_type&) { ++ended; });
    for (auto& one : all) one();
    all.clear();
    return ended;
  });
}
