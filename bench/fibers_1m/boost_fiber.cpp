// Without guards, as boost_context. A fiber begins when the main one, which makes them, yields.
#include "workload.hpp"

#include <boost/fiber/all.hpp>
#include <vector>

void bench::run(bench::state& state) {
  namespace fibers = boost::fibers;
  measure_at_once(
      state,
      [](std::size_t count) {
        std::vector<fibers::fiber> all;
        all.reserve(count);
        std::size_t begun = 0;
        for (std::size_t i = 0; i != count; ++i)
          all.emplace_back(fibers::launch::post, std::allocator_arg, fibers::fixedsize_stack{stack_of_each}, [&begun] {
            ++begun;
            boost::this_fiber::yield();
          });
        while (begun != count) boost::this_fiber::yield();
        return all;
      },
      [](auto& all) {
        for (auto& one : all) one.join();
      });
}
