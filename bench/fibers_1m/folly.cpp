// Fibers of one FiberManager, which guards a hundred of its stacks.
#include "workload.hpp"

#include <folly/fibers/FiberManager.h>
#include <folly/fibers/SimpleLoopController.h>

#include <exception>
#include <memory>

namespace {

struct coroutines {
  std::size_t count = 0;
  std::size_t size() const { return count; }
};

}  // namespace

void bench::run(bench::state& state) {
  namespace fibers = folly::fibers;
  auto controller = std::make_unique<fibers::SimpleLoopController>();
  auto& loop = *controller;
  fibers::FiberManager::Options options;
  options.stackSize = stack_of_each;
  options.maxFibersPoolSize = 0;  // none is kept for the next call
  fibers::FiberManager manager{std::move(controller), options};
  std::exception_ptr failure;
  std::size_t begun = 0, live = 0;
  bool over = false;
  manager.addTask([&] {
    try {
      measure_at_once(
          state,
          [&](std::size_t count) {
            begun = 0;
            over = false;
            for (std::size_t i = 0; i != count; ++i)
              manager.addTask([&] {
                ++begun;
                ++live;
                while (!over) manager.yield();
                --live;
              });
            while (begun != count) manager.yield();
            return coroutines{count};
          },
          [&](coroutines&) {
            over = true;
            while (live != 0) manager.yield();
          });
    } catch (...) {
      failure = std::current_exception();
    }
    loop.stop();
  });
  loop.loop([] {});
  if (failure) std::rethrow_exception(failure);
}
