// Scheduled: a turn of all is one yield of the main thread.
#include "workload.hpp"

#include <photon/thread/stack-allocator.h>
#include <photon/thread/thread.h>

#include <vector>

namespace {

std::size_t yielded = 0;

class coroutines {
 public:
  coroutines(std::size_t count, std::size_t stack) {
    all_.reserve(count);
    for (std::size_t i = 0; i != count; ++i)
      all_.push_back(photon::thread_enable_join(photon::thread_create(yields, nullptr, stack)));
  }
  coroutines(const coroutines&) = delete;
  ~coroutines() {
    for (auto* one : all_) photon::thread_join(one);
  }

  std::size_t resume_all() {
    const std::size_t before = yielded;
    photon::thread_yield();
    return yielded - before;
  }

 private:
  static void* yields(void*) {
    for (std::size_t left = bench::switches_of_each; left != 0; --left) {
      ++yielded;
      photon::thread_yield();
    }
    return nullptr;
  }

  std::vector<photon::join_handle*> all_;
};

}  // namespace

void bench::run(bench::state& state) {
  photon::use_pooled_stack_allocator();
  photon::vcpu_init();
  measure_libcopps<coroutines>(state);
  photon::vcpu_fini();
}
