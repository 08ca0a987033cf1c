#include "io/guest_loop.hpp"

#include <cstdint>

#include "base/thread_id.hpp"
#include "core/worker.hpp"
#include "pool/look_pace.hpp"
#include "pool/pool_core.hpp"

namespace weft::detail {

class guest_loop::turn {
 public:
  explicit turn(guest_loop& of) noexcept : of_{of} {
    std::uintptr_t none = 0;
    const std::uintptr_t here = this_thread_id();
    const bool is_mine = of.owner_.compare_exchange_strong(none, here, std::memory_order_relaxed,  // as declared
                                                           std::memory_order_relaxed) ||           // as declared
                         none == here;
    WEFT_EXPECTS(
        is_mine,
        "a guest runtime was run on a second thread: it has one worker, which is the thread that ran it first");
    WEFT_EXPECTS(!of.is_inside_, "a guest runtime was run by a task of its own: co_await there");
    of.is_inside_ = true;
  }
  turn(const turn&) = delete;
  ~turn() { of_.is_inside_ = false; }

 private:
  guest_loop& of_;
};

// No interrupt from the owner's own thread inside run_ready() or run_until(): these look for more jobs before they return.
void guest_loop::post(job& work) noexcept {
  const bool is_here = owner_.load(std::memory_order_relaxed) == this_thread_id() && is_inside_;  // as declared
  const post_hazard::mark mark{this_worker().hazard, this};  // the job may destroy the runtime
  jobs_.post(work);
  if (!is_here) set_.interrupt();
}

void guest_loop::look(epoll::time_point until) noexcept {
  set_.wait(until, changes_, [] { return true; });
  changes_.report();
}

std::size_t guest_loop::run_ready(std::size_t budget) noexcept {
  const turn mine{*this};
  look({});
  std::size_t count = 0;
  while (count != budget && jobs_.run_one()) ++count;
  if (!jobs_.empty()) set_.interrupt();  // so that the descriptor stays readable
  return count;
}

void guest_loop::run_until(const bool& over) noexcept {
  const turn mine{*this};
  std::uint32_t looks_after = look_pace::most_jobs;
  for (look_pace pace{nanoseconds_now()}; !over;) {
    std::uint32_t ran = 0;
    while (!over && ran != looks_after && jobs_.run_one()) ++ran;
    if (over) break;
    const bool is_idle = jobs_.empty();
    const std::uint64_t before = nanoseconds_now();
    look(is_idle ? epoll::time_point::max() : epoll::time_point{});
    const std::uint64_t now = nanoseconds_now();
    if (is_idle) pace.was_idle(now - before);
    looks_after = pace.looked(now, ran);
  }
  if (!jobs_.empty()) set_.interrupt();
}

}  // namespace weft::detail
