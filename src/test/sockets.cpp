#include "test/sockets.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <memory>

#include "test/memory.hpp"

namespace weft::test::detail {
namespace {

using weft::detail::epoll;

//   edge set  its construction  ->  the world that looks into it (no model: the kit's)
std::atomic<epoll*> the_set{nullptr};

// Never destroyed. Makes room for its descriptors at once, so that what a run allocates does not depend on runs before.
weft::detail::io_service& made_set() {
  static epoll& one = *[] {
    const kit_allocates mine;
    auto made = std::make_unique<epoll>();
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0)
      for (const int end : ends) made->watch(end, false).drop();
    the_set.store(made.get(), std::memory_order_release);  // -> set (no model: as declared)
    return made.release();
  }();
  return one;
}

}  // namespace

sockets::sockets() noexcept { weft::detail::watch_elsewhere(made_set); }
void sockets::end() noexcept { weft::detail::watch_elsewhere(nullptr); }

bool sockets::look() noexcept {
  epoll* const set = the_set.load(std::memory_order_acquire);  // <- set (no model: as declared)
  if (set == nullptr || set->watched() == 0) return false;
  return set->wait(epoll::time_point{}, found_, [] { return true; }) && !found_.empty();
}

}  // namespace weft::test::detail
