// Without a scheduler; its stacks come from malloc. LioNet's are the same, but it aborts at the end of a thread that had one.
#include "workload.hpp"

#include "../harness/sylar.hpp"

namespace {

class coroutines {
 public:
  coroutines(std::size_t count, std::size_t stack) {
    all_.reserve(count);
    for (std::size_t i = 0; i != count; ++i) all_.push_back(std::make_shared<sylar::Fiber>(yields, stack, true));
  }

  std::size_t resume_all() {
    std::size_t yielded = 0;
    for (auto& one : all_) {
      if (one->getState() == sylar::Fiber::TERM) continue;
      one->call();
      yielded += one->getState() == sylar::Fiber::TERM ? 0 : 1;
    }
    return yielded;
  }

 private:
  static void yields() {
    auto* const self = sylar::Fiber::GetThis().get();
    for (std::size_t left = bench::switches_of_each; left != 0; --left) self->back();
  }

  std::vector<sylar::Fiber::ptr> all_;
};

}  // namespace

void bench::run(bench::state& state) {
  const auto own = sylar::Fiber::GetThis();
  measure_libcopps<coroutines>(state);
}
