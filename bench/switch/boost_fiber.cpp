// Scheduled: every fiber yields to the scheduler, which takes the next one; the main fiber is one of the ring.
#include "workload.hpp"

#include <boost/fiber/all.hpp>

void bench::run(bench::state& state) {
  namespace fibers = boost::fibers;
  std::size_t turns = 0;
  bool over = false;
  std::vector<fibers::fiber> all;
  for (std::size_t i = 1; i < state.size(); ++i)
    all.emplace_back(std::allocator_arg, fibers::fixedsize_stack{switch_stack}, [&] {
      while (!over) {
        ++turns;
        boost::this_fiber::yield();
      }
    });
  measure_scheduled(state, turns, [] { boost::this_fiber::yield(); });
  over = true;
  for (auto& one : all) one.join();
}
