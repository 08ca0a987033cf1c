// Jobs by lists of sixteen, where the other program of weft starts a task each: so most of what lies between the two is
// the task. With `at_a_time` 1 it posts the same jobs one by one.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <weft/pool.hpp>

namespace {

constexpr std::size_t at_a_time = 16;

struct counted_job : weft::job {
  explicit counted_job(bench::posted& of) noexcept : of{&of} {
    run = [](weft::job& self) noexcept {
      bench::posted& counts = *static_cast<counted_job&>(self).of;
      delete static_cast<counted_job*>(&self);
      counts.ran();
    };
  }
  bench::posted* of;
};

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = static_cast<unsigned>(state.size())}};
  state.measure(posts, posts, [&] {
    posted all;
    return all.by_producers(
        [&](posted& of) {
          weft::job* first = nullptr;
          for (std::size_t i = 0; i != at_a_time; ++i) {
            auto* const one = new counted_job{of};
            one->next = first;
            first = one;
          }
          pool.post_all(first);
        },
        at_a_time);
  });
}
