// The limit for who waits for nothing but jobs: a futex.
#include "workload.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

void bench::run(bench::state& state) {
  static std::atomic<std::uint32_t> posts{0};
  std::atomic<std::atomic<bool>*> job{nullptr};
  std::atomic<bool> over{false};
  std::thread worker{[&] {
    for (std::uint32_t seen = 0; !over.load(std::memory_order_acquire);) {
      while (posts.load(std::memory_order_acquire) == seen)
        ::syscall(SYS_futex, &posts, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
      seen = posts.load(std::memory_order_acquire);
      if (auto* flag = job.exchange(nullptr, std::memory_order_acquire)) flag->store(true, std::memory_order_release);
    }
  }};
  const auto ring = [] {
    posts.fetch_add(1, std::memory_order_release);
    ::syscall(SYS_futex, &posts, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  };
  wake_ups(state, [&](std::atomic<bool>& ran) {
    job.store(&ran, std::memory_order_release);
    ring();
  });
  over.store(true, std::memory_order_release);
  ring();
  worker.join();
}
