// Scheduled: fibers of one FiberManager; a turn of all is one yield of the fiber that measures.
#include "workload.hpp"

#include <folly/fibers/FiberManager.h>
#include <folly/fibers/SimpleLoopController.h>

#include <exception>
#include <memory>

namespace {

folly::fibers::FiberManager* manager = nullptr;

class coroutines {
 public:
  coroutines(std::size_t count, std::size_t) : count_{count} {  // the stack's size is the manager's
    for (std::size_t i = 0; i != count; ++i)
      manager->addTask([this] {
        for (std::size_t left = bench::switches_of_each; left != 0; --left) {
          ++yielded_;
          manager->yield();
        }
        ++ended_;
      });
  }
  coroutines(const coroutines&) = delete;
  ~coroutines() {
    while (ended_ != count_) manager->yield();
  }

  std::size_t resume_all() {
    const std::size_t before = yielded_;
    do manager->yield();
    while (yielded_ == before && ended_ != count_);
    return yielded_ - before;
  }

 private:
  std::size_t count_, yielded_ = 0, ended_ = 0;
};

}  // namespace

void bench::run(bench::state& state) {
  namespace fibers = folly::fibers;
  auto controller = std::make_unique<fibers::SimpleLoopController>();
  auto& loop = *controller;
  fibers::FiberManager::Options options;
  options.stackSize = stack_bytes(state);
  options.maxFibersPoolSize = state.size();
  fibers::FiberManager made{std::move(controller), options};
  manager = &made;
  std::exception_ptr failure;
  made.addTask([&] {
    try {
      measure_libcopps<coroutines>(state);
    } catch (...) {
      failure = std::current_exception();
    }
    loop.stop();
  });
  loop.loop([] {});
  if (failure) std::rethrow_exception(failure);
}
