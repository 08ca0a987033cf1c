// Scheduled: fibers of one FiberManager; a turn of all is one yield of the fiber that measures.
#include "workload.hpp"

#include "../harness/folly_fibers.hpp"

namespace {

bench::folly_fibers* fibers = nullptr;

class coroutines {
 public:
  coroutines(std::size_t count, std::size_t) : count_{count} {  // the stack's size is the manager's
    for (std::size_t i = 0; i != count; ++i)
      fibers->add([this] {
        for (std::size_t left = bench::switches_of_each; left != 0; --left) {
          ++yielded_;
          fibers->yield();
        }
        ++ended_;
      });
  }
  coroutines(const coroutines&) = delete;
  ~coroutines() {
    while (ended_ != count_) fibers->yield();
  }

  std::size_t resume_all() {
    const std::size_t before = yielded_;
    do fibers->yield();
    while (yielded_ == before && ended_ != count_);
    return yielded_ - before;
  }

 private:
  std::size_t count_, yielded_ = 0, ended_ = 0;
};

}  // namespace

void bench::run(bench::state& state) {
  folly_fibers made{stack_bytes(state), state.size()};
  fibers = &made;
  made.run([&] { measure_libcopps<coroutines>(state); });
}
