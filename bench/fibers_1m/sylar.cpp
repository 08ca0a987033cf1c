// Without a scheduler, and without guards: its stacks come from malloc.
#include "workload.hpp"

#include "../harness/sylar.hpp"

void bench::run(bench::state& state) {
  const auto own = sylar::Fiber::GetThis();
  measure_at_once(
      state,
      [](std::size_t count) {
        std::vector<sylar::Fiber::ptr> all;
        all.reserve(count);
        for (std::size_t i = 0; i != count; ++i) {
          all.push_back(
              std::make_shared<sylar::Fiber>([] { sylar::Fiber::GetThis().get()->back(); }, stack_of_each, true));
          all.back()->call();
        }
        return all;
      },
      [](auto& all) {
        for (auto& one : all) one->call();
      });
}
