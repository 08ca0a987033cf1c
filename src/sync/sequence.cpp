#include <weft/sequence.hpp>

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>

namespace weft {

using detail::root;

namespace {

std::size_t checked(std::size_t size, const sequence_barrier& consumed, sequence_number published) noexcept {
  WEFT_EXPECTS(std::has_single_bit(size), "the size of a buffer that a sequencer numbers is a power of two");
  WEFT_EXPECTS(consumed.last_published() == published,
               "a sequencer begins at another number than the barrier of those that read");
  return size;
}

}  // namespace

// ---- barrier ----------------------------------------------------------------------------------------------------------------

void sequence_barrier::publish(sequence_number last) noexcept {
  let_through through;
  publish(last, through);
}

void sequence_barrier::publish(sequence_number last, let_through& through) noexcept {
  const std::lock_guard guard{lock_};
  WEFT_EXPECTS(has_reached(last, published_.load(std::memory_order_relaxed)),  // under the lock
               "a sequence was published that lies before what was published by then");
  published_.store(last, std::memory_order_release);  // -> published (no model: as declared)
  for (detail::waiter* one = line_.first(); one != nullptr;) {
    detail::waiter& next = *std::exchange(one, one->next);
    if (!has_reached(last, static_cast<awaiter&>(next).target_)) continue;
    line_.remove(next);
    through.add(next);
  }
}

bool sequence_barrier::awaiter::suspend(root& self) noexcept {
  if (self.sleeper::stop_requested()) return (end_stopped(self), true);
  if (seems_ready()) return false;
  sequence_barrier& b = of();
  b.lock_.lock();
  if (seems_ready()) return (b.lock_.unlock(), false);
  b.gate::wait(self, *this);
  return true;
}

// ---- one producer -------------------------------------------------------------------------------------------------------------

single_producer_sequencer::single_producer_sequencer(sequence_barrier& consumed, std::size_t size,
                                                     sequence_number published) noexcept
    : consumed_{consumed}, size_{checked(size, consumed, published)}, claimed_{published}, published_{published} {}

sequence_range single_producer_sequencer::claim_of_some::await_resume() const noexcept {
  const auto free = static_cast<std::size_t>(by_.consumed_.last_published() + by_.size_ - by_.claimed_);
  const sequence_range mine{by_.claimed_ + 1, std::min(free, count_)};
  by_.claimed_ += mine.size();
  return mine;
}

// ---- many producers -----------------------------------------------------------------------------------------------------------

multi_producer_sequencer::multi_producer_sequencer(sequence_barrier& consumed, std::size_t size,
                                                   sequence_number published)
    : consumed_{consumed},
      size_{checked(size, consumed, published)},
      claimed_{published},
      is_there_{std::make_unique<bool[]>(size)},
      published_{published} {}

multi_producer_sequencer::~multi_producer_sequencer() {
  const std::lock_guard guard{lock_};  // of one that has published, and is on its way out
}

task<sequence_number> multi_producer_sequencer::claim_one() {
  const auto turn = co_await claims_.lock();
  static_cast<void>(co_await consumed_.wait_until_published(claimed_ + 1 - size_));
  co_return ++claimed_;
}

task<sequence_range> multi_producer_sequencer::claim_up_to(std::size_t count) {
  WEFT_EXPECTS(count != 0, "no number was claimed of a sequencer");
  const auto turn = co_await claims_.lock();
  const sequence_number consumed = co_await consumed_.wait_until_published(claimed_ + 1 - size_);
  const sequence_range mine{claimed_ + 1, std::min(static_cast<std::size_t>(consumed + size_ - claimed_), count)};
  claimed_ += mine.size();
  co_return mine;
}

// Who publishes the first one that is missing publishes those behind it, too. Those that wait are woken when both locks are
// free.
void multi_producer_sequencer::publish(const sequence_range& all) noexcept {
  detail::let_through through;
  const std::lock_guard guard{lock_};
  const std::size_t mask = size_ - 1;
  for (const sequence_number one : all) is_there_[one & mask] = true;
  sequence_number last = published_.last_published();
  if (all.empty() || !is_there_[(last + 1) & mask]) return;
  while (is_there_[(last + 1) & mask]) is_there_[++last & mask] = false;
  published_.publish(last, through);
}

}  // namespace weft
