// Each call has a pool of its own: no stack is warm from the call before.
#include "workload.hpp"

#include <memory>
#include <utility>
#include <vector>
#include <weft/coroutine.hpp>
#include <weft/fiber.hpp>
#include <weft/stack_pool.hpp>

namespace {

struct coroutines {
  std::unique_ptr<weft::stack_pool> stacks;  // below what runs on them
  std::vector<weft::coroutine<void()>> all;
  std::size_t size() const { return all.size(); }
};

}  // namespace

void bench::run(bench::state& state) {
  measure_at_once(
      state,
      [](std::size_t count) {
        coroutines made{std::make_unique<weft::stack_pool>(), {}};
        made.all.reserve(count);
        for (std::size_t i = 0; i != count; ++i) {
          made.all.emplace_back(weft::stack_options{.size = stack_of_each, .pool = made.stacks.get()},
                                [](auto& yield) { yield(); });
          made.all.back().resume();
        }
        return made;
      },
      [](coroutines& made) {
        for (auto& one : made.all) one.resume();
      });
}
