// Scheduled, without hooks: a turn of all is one yield of the coroutine that measures. Stacks come from malloc.
#include "workload.hpp"

#include "../harness/libgo.hpp"

namespace {

class coroutines {
 public:
  coroutines(std::size_t count, std::size_t stack) : count_{count} {
    for (std::size_t i = 0; i != count; ++i) go co_stack(stack)[this] {
        for (std::size_t left = bench::switches_of_each; left != 0; --left) {
          ++yielded_;
          co_yield;
        }
        ++ended_;
      };
  }
  coroutines(const coroutines&) = delete;
  ~coroutines() {
    while (ended_ != count_) co_yield;
  }

  std::size_t resume_all() {
    const std::size_t before = yielded_;
    do co_yield;
    while (yielded_ == before && ended_ != count_);
    return yielded_ - before;
  }

 private:
  std::size_t count_, yielded_ = 0, ended_ = 0;
};

}  // namespace

void bench::run(bench::state& state) {
  in_libgo([&] { measure_libcopps<coroutines>(state); });
}
