// With its own allocator of stacks. A thread of Photon's begins when the one that made it yields.
#include "workload.hpp"

#include <photon/thread/thread.h>

#include <vector>

namespace {

void* yields(void*) {
  photon::thread_yield();
  return nullptr;
}

}  // namespace

void bench::run(bench::state& state) {
  photon::vcpu_init();
  measure_at_once(
      state,
      [](std::size_t count) {
        std::vector<photon::join_handle*> all;
        all.reserve(count);
        for (std::size_t i = 0; i != count; ++i) {
          auto* const one = photon::thread_create(yields, nullptr, stack_of_each);
          if (one == nullptr) break;  // the system has no more guards
          all.push_back(photon::thread_enable_join(one));
        }
        photon::thread_yield();
        return all;
      },
      [](auto& all) {
        for (auto* one : all) photon::thread_join(one);
      });
  photon::vcpu_fini();
}
