// Without guards, as boost_context. A pull_type runs up to its first yield when it is made.
#include "workload.hpp"

#include <boost/coroutine2/coroutine.hpp>

#include <vector>

void bench::run(bench::state& state) {
  using coroutine = boost::coroutines2::coroutine<void>;
  measure_at_once(
      state,
      [](std::size_t count) {
        std::vector<coroutine::pull_type> all;
        all.reserve(count);
        for (std::size_t i = 0; i != count; ++i)
          all.emplace_back(boost::coroutines2::fixedsize_stack{stack_of_each},
                           [](coroutine::push_type& yield) { yield(); });
        return all;
      },
      [](auto& all) {
        for (auto& one : all) one();
      });
}
