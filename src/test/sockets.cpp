#include "test/sockets.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <weft/error.hpp>

#include "io/back_end.hpp"
#include "io/io_service.hpp"
#include "test/memory.hpp"

namespace weft::test::detail {
namespace {

using weft::detail::back_end;

struct kept_back_end {
  std::unique_ptr<back_end> io;
  pid_t owner;  // the thread that made it
  kept_back_end* older;
};

// Makes a back end. Has it allocate room for descriptors at once, so that a run's allocations do not depend on earlier runs.
std::unique_ptr<back_end> made(io_backend by) {
  std::string why_not;
  auto io =
      by == io_backend::uring ? weft::detail::make_uring_back_end(1, why_not) : weft::detail::make_epoll_back_end();
  if (io == nullptr) throw error{std::make_error_code(std::errc::not_supported), "run a test on io_uring", why_not};
  io->begin_here();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0)
    for (const int end : ends) io->service().watch(end, false).drop();
  return io;
}

// The calling thread's back end; all threads share the one of epoll. Null: there is none, and none is needed. Never destroyed;
// a forked child makes its own.
back_end* back_end_here(io_backend by, bool is_needed) {
  static constinit std::mutex lock;
  static constinit kept_back_end* newest = nullptr;
  const std::lock_guard guard{lock};
  for (kept_back_end* one = newest; one != nullptr; one = one->older)
    if (one->io->kind() == by && (by == io_backend::epoll || one->owner == ::gettid()) &&
        !one->io->service().is_inherited())
      return one->io.get();
  if (!is_needed) return nullptr;
  const kit_allocates mine;
  newest = new kept_back_end{made(by), ::gettid(), newest};
  return newest->io.get();
}

// The back end of the present run. Null: a run on epoll has made no descriptor yet.
//   edge run  its construction  ->  the run, and a thread that makes a descriptor in it (no model: the kit's)
std::atomic<back_end*> current{nullptr};

weft::detail::io_service& current_service() {
  back_end* now = current.load(std::memory_order_acquire);  // <- run (no model: as declared)
  if (now == nullptr || now->service().is_inherited()) {
    now = back_end_here(now != nullptr ? now->kind() : io_backend::epoll, true);
    current.store(now, std::memory_order_release);  // -> run (no model: as declared)
  }
  return now->service();
}

}  // namespace

sockets::sockets(io_backend by) {
  if (by == io_backend::automatic) by = weft::detail::wanted_by_environment();
  if (by == io_backend::automatic) by = io_backend::epoll;
  current.store(back_end_here(by, by == io_backend::uring),
                std::memory_order_release);  // -> run (no model: as declared)
  weft::detail::watch_elsewhere(current_service);
}

// Lets a ring cancel the polls of closed descriptors, so that each run finds all descriptors unused.
void sockets::end() noexcept {
  weft::detail::watch_elsewhere(nullptr);
  while (look()) report();
}

weft::detail::io_service* sockets::ring() const noexcept {
  back_end* const now = current.load(std::memory_order_acquire);  // <- run (no model: as declared)
  return now != nullptr && now->kind() == io_backend::uring ? &now->service() : nullptr;
}

bool sockets::look() noexcept {
  back_end* const now = current.load(std::memory_order_acquire);  // <- run (no model: as declared)
  return now != nullptr && !now->service().is_inherited() && now->look();
}

void sockets::report() noexcept {
  current.load(std::memory_order_acquire)->report();  // <- run (no model: as declared)
}

bool sockets::has_calls() const noexcept {
  back_end* const now = current.load(std::memory_order_acquire);  // <- run (no model: as declared)
  return now != nullptr && now->has_calls();
}

}  // namespace weft::test::detail
