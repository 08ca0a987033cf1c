// Scheduled: every thread of Photon's yields to the next one of its vCPU; the main one is one of the ring.
#include "workload.hpp"

#include <photon/thread/thread.h>

#include <vector>

namespace {

std::size_t turns = 0;
bool over = false;

void* takes_turns(void*) {
  while (!over) {
    ++turns;
    photon::thread_yield();
  }
  return nullptr;
}

}  // namespace

void bench::run(bench::state& state) {
  photon::vcpu_init();
  std::vector<photon::join_handle*> all;
  for (std::size_t i = 1; i < state.size(); ++i)
    all.push_back(photon::thread_enable_join(photon::thread_create(takes_turns, nullptr, switch_stack)));
  measure_scheduled(state, turns, [] { photon::thread_yield(); });
  over = true;
  for (auto* one : all) photon::thread_join(one);
  photon::vcpu_fini();
}
