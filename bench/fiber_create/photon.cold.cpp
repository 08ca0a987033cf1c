// With guards, from the system and back to it, as it does where its pool is not asked for. A thread of Photon's begins when
// the one that made it yields.
#include "workload.hpp"

#include <photon/thread/thread.h>

namespace {

std::size_t ended = 0;

void* ends(void*) {
  ++ended;
  return nullptr;
}

}  // namespace

void bench::run(bench::state& state) {
  photon::vcpu_init();
  measure_creation(state, [](std::size_t count) {
    ended = 0;
    for (std::size_t i = 0; i != count; ++i) photon::thread_create(ends, nullptr, created_stack);
    while (ended != count) photon::thread_yield();
    return ended;
  });
  photon::vcpu_fini();
}
