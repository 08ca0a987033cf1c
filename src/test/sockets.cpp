#include "test/sockets.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <memory>

#include "test/memory.hpp"

namespace weft::test::detail {
namespace {

using weft::detail::epoll;

//   edge set  its construction  ->  the world that looks into it, or has it watch (no model: the kit's)
std::atomic<epoll*> the_set{nullptr};

// Never destroyed; a child that was forked makes one of its own. Makes room for its descriptors at once, so that what a run
// allocates does not depend on runs before.
weft::detail::io_service& made_set() {
  epoll* seen = the_set.load(std::memory_order_acquire);  // <- set (no model: as declared)
  while (seen == nullptr || seen->is_inherited()) {
    const kit_allocates mine;
    auto made = std::make_unique<epoll>();
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0)
      for (const int end : ends) made->watch(end, false).drop();
    if (the_set.compare_exchange_strong(seen, made.get(),
                                        std::memory_order_acq_rel,   // ->, <- set (no model: as declared)
                                        std::memory_order_acquire))  // <- set (no model: as declared)
      return *made.release();
  }
  return *seen;
}

}  // namespace

sockets::sockets() noexcept { weft::detail::watch_elsewhere(made_set); }
void sockets::end() noexcept { weft::detail::watch_elsewhere(nullptr); }

bool sockets::look() noexcept {
  epoll* const set = the_set.load(std::memory_order_acquire);  // <- set (no model: as declared)
  if (set == nullptr || set->is_inherited() || set->watched() == 0) return false;
  return set->wait(epoll::time_point{}, found_, [] { return true; }) && !found_.empty();
}

}  // namespace weft::test::detail
