// What a worker sleeps on may be more than a futex, and have jobs for it: a pool whose workers each have a descriptor to
// sleep on, and something that completes there. See src/sched/parker.hpp.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <semaphore>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/detail/base/inbox.hpp>
#include <weft/pool.hpp>

#include "pool/pool_core.hpp"
#include "support/weft_test.hpp"

namespace {

using weft::job;
using weft::start_on;
using weft::sync_wait;
using weft::task;
using weft::detail::inbox;
using weft::detail::parker;
using weft::detail::pool_core;

static_assert(noexcept(std::declval<parker&>().poll(true)));

class device final : public parker {
 public:
  device() : wakes_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)} {}
  ~device() override { ::close(wakes_); }

  void prepare() noexcept override {}  // what is written stays there until it is read
  void commit(time_point until) noexcept override {
    if (polls_ == polls_at_sleep_) ++sleeps_unasked;
    polls_at_sleep_ = polls_;
    if (committing != nullptr) committing(*this);
    pollfd readable{.fd = wakes_, .events = POLLIN, .revents = 0};
    const auto left = until - std::chrono::steady_clock::now();
    const auto most = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    ::poll(&readable, 1, until == time_point::max() ? -1 : static_cast<int>(std::max<decltype(most)>(most, 0)));
    std::uint64_t count;
    static_cast<void>(::read(wakes_, &count, sizeof count));
  }
  void wake() noexcept override {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(wakes_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
  bool poll(bool) noexcept override {
    ++polls_;
    if (polling != nullptr) polling(*this);
    job* arrived = arrived_.empty() ? nullptr : arrived_.take();
    const bool any = arrived != nullptr;
    while (arrived != nullptr) {
      job* const later = arrived->next;
      to->post(*arrived);
      arrived = later;
    }
    return any;
  }

  /// From any thread, as a kernel would. `told`: whoever sleeps there hears of it.
  void complete(job& work, bool told = true) noexcept {
    arrived_.put(work);
    if (told) wake();
  }

  weft::executor* to = nullptr;
  unsigned worker = 0;
  std::atomic<int> sleeps_unasked{0};
  void (*polling)(device&) noexcept = nullptr;
  void (*committing)(device&) noexcept = nullptr;
  void* with = nullptr;
  unsigned polls() const noexcept { return polls_; }  // by its worker

 private:
  const int wakes_;
  inbox<job> arrived_;  // its edge: what who completes wrote  ->  the job
  unsigned polls_ = 0, polls_at_sleep_ = 0;
};

// A pool of its own kind of sleepers. They can be told more before it begins.
class pool_on_devices {
 public:
  template <class Prepare>
  pool_on_devices(unsigned threads, Prepare prepare) {
    for (unsigned i = 0; i != threads; ++i) {
      devices.push_back(std::make_unique<device>());
      devices.back()->worker = i;
      prepare(*devices.back());
    }
    const auto of = [](unsigned worker, void* with) -> parker& {
      return *static_cast<pool_on_devices*>(with)->devices[worker];
    };
    core = pool_core::make({.threads = threads}, {.of = of, .with = this});
  }
  explicit pool_on_devices(unsigned threads) : pool_on_devices{threads, [](device&) {}} {}
  ~pool_on_devices() {
    core->release();
    for (const auto& one : devices) EXPECT_EQ(one->sleeps_unasked, 0) << "it slept without a look at its parker";
  }

  std::vector<std::unique_ptr<device>> devices;
  pool_core* core;
};

// Says where it ran.
struct noted : job {
  explicit noted(const pool_core& of) noexcept : core{of} {
    run = [](job& self) noexcept {
      auto& mine = static_cast<noted&>(self);
      mine.ran_on = mine.core.worker_id();
      mine.has_run = true;
      mine.ran.release();
    };
  }
  const pool_core& core;
  unsigned ran_on = ~0u;
  bool has_run = false;  // for who runs on the same worker
  std::binary_semaphore ran{0};
};

TEST(parker, is_asked_every_few_dozen_jobs) {
  pool_on_devices p{1};
  const auto yields = [&]() -> task<unsigned> {
    const unsigned before = p.devices[0]->polls();
    for (int i = 0; i != 610; ++i) co_await weft::yield();
    co_return p.devices[0]->polls() - before;
  };
  EXPECT_EQ(sync_wait(start_on(*p.core, yields())), 10u);
}

TEST(parker, what_it_has_runs_while_its_worker_is_busy) {
  pool_on_devices p{1};
  p.devices[0]->to = p.core;
  noted arrives{*p.core};
  const auto waits_for_it = [&]() -> task<> {
    p.devices[0]->complete(arrives);
    while (!arrives.has_run) co_await weft::yield();  // there is always another job
  };
  sync_wait(start_on(*p.core, waits_for_it()));
  EXPECT_EQ(arrives.ran_on, 0u);
}

TEST(parker, what_it_has_runs_when_its_worker_has_slept) {
  pool_on_devices p{1};
  p.devices[0]->to = p.core;
  for (int i = 0; i != 100; ++i) {
    noted arrives{*p.core};
    p.devices[0]->complete(arrives);
    arrives.ran.acquire();
    EXPECT_EQ(arrives.ran_on, 0u);
  }
}

TEST(parker, what_it_has_for_its_worker_alone_runs_there) {
  pool_on_devices p{3};
  for (unsigned i = 0; i != 3; ++i) p.devices[i]->to = &p.core->executor_of(i);
  for (int i = 0; i != 100; ++i)
    for (unsigned worker = 0; worker != 3; ++worker) {
      noted arrives{*p.core};
      p.devices[worker]->complete(arrives);
      arrives.ran.acquire();
      EXPECT_EQ(arrives.ran_on, worker);
    }
}

// Of two that wake up one searches and the other one does not. The first one to be asked goes on when the second one
// has been asked, too, or sleeps.
TEST(parker, is_asked_before_a_sleep_without_a_search) {
  struct meeting {
    std::atomic<int> asked{0};
    std::atomic<bool> other{false};
  } both;
  {
    const pool_on_devices p{2, [&](device& one) {
                              one.with = &both;
                              one.polling = [](device& self) noexcept {
                                auto& all = *static_cast<meeting*>(self.with);
                                self.polling = nullptr;
                                if (all.asked++ == 0) return all.other.wait(false);
                                all.other = true;
                                all.other.notify_all();
                              };
                              one.committing = [](device& self) noexcept {
                                auto& all = *static_cast<meeting*>(self.with);
                                self.committing = nullptr;
                                all.other = true;
                                all.other.notify_all();
                              };
                            }};
    both.other.wait(false);
  }
  EXPECT_EQ(both.asked, 2);
}

TEST(parker, what_it_has_at_the_end_runs_before_the_pool_has_ended) {
  pool_on_devices p{1};
  p.devices[0]->to = p.core;
  noted arrives{*p.core};
  p.devices[0]->complete(arrives, false);
  p.core->shut_down(weft::pool_shutdown::drain);
  EXPECT_TRUE(arrives.ran.try_acquire());
}

TEST(parker, work_is_shared_as_on_any_other) {
  pool_on_devices p{4};
  struct count {
    static task<int> leaves(int depth) {
      if (depth == 0) co_return 1;
      const auto [a, b] = co_await weft::when_all(leaves(depth - 1), leaves(depth - 1));
      co_return a + b;
    }
  };
  for (int i = 0; i != 20; ++i) EXPECT_EQ(sync_wait(start_on(*p.core, count::leaves(10))), 1024);
}

// It is asked at each look, so it can tell how often its worker has looked. A lone one does so twice, and gives its processor
// away only where sleeps are short.
TEST(parker, is_asked_more_often_before_the_sleep_of_a_worker_that_has_worked_for_milliseconds) {
  struct looks {
    unsigned before = 0, since = 0;
    std::binary_semaphore sleeps{0};
  } seen;
  pool_on_devices p{1, [&](device& one) {
                      one.with = &seen;
                      one.committing = [](device& mine) noexcept {
                        auto& its = *static_cast<looks*>(mine.with);
                        if (its.before == 0) return;  // it has not worked
                        its.since = mine.polls() - std::exchange(its.before, 0);
                        its.sleeps.release();
                      };
                    }};
  const auto works = [&]() -> task<> {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds{20};
    while (std::chrono::steady_clock::now() < until) continue;
    seen.before = p.devices[0]->polls();
    co_return;
  };
  sync_wait(start_on(*p.core, works()));
  seen.sleeps.acquire();
  EXPECT_GT(seen.since, 2u);
}

}  // namespace
