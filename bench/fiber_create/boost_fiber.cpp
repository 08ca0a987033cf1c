// Fibers of one thread; the main one joins them.
#include "workload.hpp"

#include <boost/fiber/all.hpp>
#include <vector>

void bench::run(bench::state& state) {
  namespace fibers = boost::fibers;
  fibers::pooled_fixedsize_stack stacks{created_stack};
  std::vector<fibers::fiber> all;
  all.reserve(state.size());
  measure_creation(state, [&](std::size_t count) {
    std::size_t ended = 0;
    for (std::size_t i = 0; i != count; ++i)
      all.emplace_back(fibers::launch::post, std::allocator_arg, fibers::pooled_fixedsize_stack{stacks},
                       [&] { ++ended; });
    for (auto& one : all) one.join();
    all.clear();
    return ended;
  });
}
