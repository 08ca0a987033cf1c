#include "workload.hpp"

#include "../harness/libcopp.hpp"

#include <vector>

namespace {

class coroutines {
 public:
  coroutines(std::size_t count, std::size_t stack) {
    static bench::libcopp_stacks stacks{count, stack};
    all_.reserve(count);
    for (std::size_t i = 0; i != count; ++i)
      all_.push_back(stacks.make([] {
        auto* const self = copp::this_coroutine::get_coroutine();
        for (std::size_t left = bench::switches_of_each; left != 0; --left) self->yield();
      }));
  }

  std::size_t resume_all() {
    std::size_t yielded = 0;
    for (auto& one : all_) {
      if (one->is_finished()) continue;
      one->resume();
      yielded += one->is_finished() ? 0 : 1;
    }
    return yielded;
  }

 private:
  std::vector<bench::libcopp_stacks::coroutine::ptr_t> all_;
};

}  // namespace

void bench::run(bench::state& state) { measure_libcopps<coroutines>(state); }
