// Without guards, from its allocator that is above malloc, which keeps what the call before has used: with the other one,
// which guards 32,000 on the system's default settings, the system ends before 400,000. Each call has a pool of its own.
#include "workload.hpp"

#include "../harness/libcopp.hpp"

#include <libcopp/stack/allocator/stack_allocator_malloc.h>

#include <memory>
#include <vector>

namespace {

using unguarded_stacks = bench::basic_libcopp_stacks<copp::allocator::stack_allocator_malloc>;

struct coroutines {
  std::unique_ptr<unguarded_stacks> stacks;
  std::vector<unguarded_stacks::coroutine::ptr_t> all;
  std::size_t size() const { return all.size(); }
};

}  // namespace

void bench::run(bench::state& state) {
  measure_at_once(
      state,
      [](std::size_t count) {
        coroutines made{std::make_unique<unguarded_stacks>(count, stack_of_each), {}};
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
