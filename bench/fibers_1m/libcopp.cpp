// Each call has a pool of its own: no stack is warm from the call before. The pool asks the system for a guard below each
// stack, and does not look whether it got one: on its default settings some 32,000 have one.
#include "workload.hpp"

#include "../harness/libcopp.hpp"

#include <memory>
#include <vector>

namespace {

struct coroutines {
  std::unique_ptr<bench::libcopp_stacks> stacks;
  std::vector<bench::libcopp_stacks::coroutine::ptr_t> all;
  std::size_t size() const { return all.size(); }
};

}  // namespace

void bench::run(bench::state& state) {
  measure_at_once(
      state,
      [](std::size_t count) {
        coroutines made{std::make_unique<libcopp_stacks>(count, stack_of_each), {}};
        made.all.reserve(count);
        for (std::size_t i = 0; i != count; ++i) {
          made.all.push_back(made.stacks->make([] { copp::this_coroutine::get_coroutine()->yield(); }));
          made.all.back()->start();
        }
        return made;
      },
      [](coroutines& made) {
        for (auto& one : made.all) one->resume();
      });
}
