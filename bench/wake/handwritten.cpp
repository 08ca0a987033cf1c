// The limit for who waits for sockets, too: an eventfd in an epoll set.
#include "workload.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

void bench::run(bench::state& state) {
  const int bell = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), set = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event wanted{.events = EPOLLIN | EPOLLET, .data = {}};
  ::epoll_ctl(set, EPOLL_CTL_ADD, bell, &wanted);
  std::atomic<std::atomic<bool>*> job{nullptr};
  std::atomic<bool> over{false};
  std::thread worker{[&] {
    while (!over.load(std::memory_order_acquire)) {
      epoll_event what;
      ::epoll_wait(set, &what, 1, -1);
      if (auto* flag = job.exchange(nullptr, std::memory_order_acquire)) flag->store(true, std::memory_order_release);
    }
  }};
  const auto ring = [&] {
    const std::uint64_t one = 1;
    return ::write(bell, &one, sizeof one) == sizeof one;
  };
  wake_ups(state, [&](std::atomic<bool>& ran) {
    job.store(&ran, std::memory_order_release);
    state.verify(ring(), "the eventfd can't be written");
  });
  over.store(true, std::memory_order_release);
  state.verify(ring(), "the eventfd can't be written");
  worker.join();
  ::close(bell);
  ::close(set);
}
