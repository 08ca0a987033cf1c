// Scheduled: fibers of one FiberManager. One that yields runs again after all others; the one that measures is among them.
#include "workload.hpp"

#include <folly/fibers/FiberManager.h>
#include <folly/fibers/SimpleLoopController.h>

#include <exception>
#include <memory>

void bench::run(bench::state& state) {
  namespace fibers = folly::fibers;
  auto controller = std::make_unique<fibers::SimpleLoopController>();
  auto& loop = *controller;
  fibers::FiberManager::Options options;
  options.stackSize = switch_stack;
  fibers::FiberManager manager{std::move(controller), options};
  std::size_t turns = 0;
  bool over = false;
  std::exception_ptr failure;
  for (std::size_t i = 0; i != state.size(); ++i)
    manager.addTask([&] {
      while (!over) {
        ++turns;
        manager.yield();
      }
    });
  manager.addTask([&] {
    try {
      measure_switches(state, turns, [&] { manager.yield(); });
    } catch (...) {
      failure = std::current_exception();
    }
    over = true;
    loop.stop();
  });
  loop.loop([] {});
  if (failure) std::rethrow_exception(failure);
}
