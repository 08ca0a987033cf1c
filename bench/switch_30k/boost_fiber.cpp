// Fibers of one thread, scheduled in turn; the main one joins them.
#include "workload.hpp"

#include <boost/fiber/all.hpp>
#include <vector>

void bench::run(bench::state& state) {
  namespace fibers = boost::fibers;
  choose_switches(state);
  const std::size_t count = state.size(), expected = count * switches_of_each;
  static fibers::pooled_fixedsize_stack stacks{stack_bytes(state)};
  state.measure(expected, expected, [&] {
    std::size_t switches = 0;
    std::vector<fibers::fiber> all;
    all.reserve(count);
    for (std::size_t i = 0; i != count; ++i)
      all.emplace_back(fibers::launch::post, std::allocator_arg, fibers::pooled_fixedsize_stack{stacks}, [&] {
        for (std::size_t left = switches_of_each; left != 0; --left) boost::this_fiber::yield();
        switches += switches_of_each;
      });
    for (auto& one : all) one.join();
    return switches;
  });
}
