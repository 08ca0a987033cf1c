// Fibers of one FiberManager, which keeps ended ones.
#include "workload.hpp"

#include <folly/fibers/FiberManager.h>
#include <folly/fibers/SimpleLoopController.h>

#include <memory>

void bench::run(bench::state& state) {
  namespace fibers = folly::fibers;
  auto controller = std::make_unique<fibers::SimpleLoopController>();
  auto& loop = *controller;
  fibers::FiberManager::Options options;
  options.stackSize = created_stack;
  options.maxFibersPoolSize = state.size();
  fibers::FiberManager manager{std::move(controller), options};
  measure_creation(state, [&](std::size_t count) {
    std::size_t ended = 0;
    for (std::size_t i = 0; i != count; ++i) manager.addTask([&] { ++ended; });
    loop.loop([&] {
      if (ended == count) loop.stop();
    });
    return ended;
  });
}
