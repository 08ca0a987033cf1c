// The limit: two threads wait in one epoll set, and the system wakes the one that is there.
#include "workload.hpp"

#include <sys/epoll.h>

void bench::run(bench::state& state) {
  two_ends starts{state}, meanwhile{state};
  computation run;
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  for (const two_ends* one : {&starts, &meanwhile}) {
    epoll_event wanted{.events = EPOLLIN | EPOLLEXCLUSIVE, .data = {.fd = one->theirs()}};
    state.verify(::epoll_ctl(set, EPOLL_CTL_ADD, one->theirs(), &wanted) == 0);
  }
  const auto serve = [&] {
    for (;;) {
      epoll_event what;
      if (::epoll_wait(set, &what, 1, -1) != 1) continue;
      char byte;
      const auto got = ::recv(what.data.fd, &byte, 1, MSG_DONTWAIT);
      if (got == 0) return;
      if (got < 0) continue;
      what.data.fd == starts.theirs() ? run.compute() : run.came();
    }
  };
  std::thread first{serve}, second{serve};
  run.measure(state, starts, meanwhile);
  starts.close_mine();
  first.join();
  second.join();
  for (const int one : {set, starts.theirs(), meanwhile.theirs()}) ::close(one);
}
