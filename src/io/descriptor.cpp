#include <weft/detail/io/descriptor.hpp>

#include "io/file.hpp"
#include "io/io_service.hpp"

namespace weft::detail {

void descriptor::begin(io_service& of, int number, bool is_ready) noexcept {
  of_ = &of;
  number_.store(number, std::memory_order_relaxed);  // nobody else has it yet
  for (event* one : {&readable_, &writable_}) is_ready ? one->set() : one->reset();
  ended_.store(std::uint32_t{generation()} << 16, std::memory_order_relaxed);  // as declared
  armed_.store(0, std::memory_order_relaxed);                                  // nobody else has it yet
  is_shared_.store(true, std::memory_order_relaxed);                           // nobody else has it yet
  moved_.store(0, std::memory_order_relaxed);                                  // nobody else has it yet
  use_.store(open | owned, std::memory_order_relaxed);                         // nobody else has it yet
}

// Sets bits of `ended_`. False: the memory is another descriptor's by now.
bool descriptor::end(std::uint16_t of_generation, std::uint32_t bits) noexcept {
  std::uint32_t seen = ended_.load(std::memory_order_relaxed);  // a guess: the exchange decides
  do {
    if (seen >> 16 != of_generation) return false;
  } while (!ended_.compare_exchange_weak(seen, seen | bits, std::memory_order_relaxed,  // report() then sets the event
                                         std::memory_order_relaxed));  // tried again
  return true;
}

void descriptor::report(std::uint16_t of_generation, const change& what) noexcept {
  if (!end(of_generation, (what.in_ended ? bit(direction::in) : 0) | (what.out_ended ? bit(direction::out) : 0) |
                              (what.urgent ? marked : 0) | (what.may_be_urgent && readable_.is_set() ? repeated : 0)))
    return;
  if (what.in || what.in_ended || merges()) readable_.set();
  if (what.out || what.out_ended) writable_.set();
}

void descriptor::arm(direction which) noexcept {
  of_->arm(*this, which);
  if (merges()) of_->arm(*this, direction::out);
}

// By the service: changes in this direction are no longer reported, until a task that is about to wait arms it anew. With merged
// directions both are disarmed: a wait checks `in` alone, and then arms both.
void descriptor::disarm(direction which) noexcept {
  const bool both = merges();
  armed_.fetch_and(static_cast<std::uint8_t>(~(both ? 3U : bit(which))), std::memory_order_relaxed);  // as declared
  event_of(both ? direction::in : which).set();
}

void descriptor::close() noexcept { end_uses(true); }

// If it was closed before, it does nothing. `is_kept`: its owner may keep the memory for long.
void descriptor::end_uses(bool is_kept) noexcept {
  std::uint32_t before = use_.load(std::memory_order_relaxed);  // a guess: the exchange decides
  do {
    if ((before & open) == 0) return;
    // A use of its own, so that the number is not closed before the waiting tasks are woken, one of which may drop this.
  } while (!use_.compare_exchange_weak(before, (before & ~open) + one_use,
                                       std::memory_order_acquire,  // <- left: of those that armed it
                                       std::memory_order_relaxed));  // tried again
  if (of_->is_inherited()) [[unlikely]] {  // the operations under way are the parent's, which shares the connection
    close_number();
    return leave(one_use);
  }
  // A shutdown would also end duplicates of the file, here or in other processes. So it is done only if an operation is under
  // way, which it ends; or if an armed poll keeps the file open until the ring's owner has cancelled it, and there is no
  // duplicate: then the peer learns of the close by the shutdown. Where there may be one, by the cancellation: at once, if
  // that is not for the end of the memory's use.
  const bool is_polled = (armed_.load(std::memory_order_relaxed) & kept) != 0;  // as declared
  const bool is_shared = is_shared_.load(std::memory_order_relaxed);            // as declared
  if ((before & ~(open | owned)) != 0 || (is_polled && !is_shared)) shut_down_file(number());
  readable_.set();
  writable_.set();
  if (is_polled && is_shared && is_kept) of_->cancel_polls(*this);
  leave(one_use);
}

int descriptor::shut_down_writes() noexcept {
  if (const int refused = shut_down_writes_of(number()); refused != 0) return refused;
  // The system reports no change for a shutdown by this side, so tasks that wait to write are woken here.
  end(generation(), bit(direction::out));
  writable_.set();
  return 0;
}

int descriptor::release() noexcept {
  const int number = number_.exchange(-1, std::memory_order_relaxed);  // as declared
  if (!of_->is_inherited()) of_->stop_watching(number);
  leave(open);
  return number;
}

void descriptor::forget() noexcept {
  number_.store(-1, std::memory_order_relaxed);  // as declared
  leave(open);
}

void descriptor::drop() noexcept {
  end_uses(false);
  leave(owned);
}

void descriptor::close_number() noexcept {
  const int number = number_.exchange(-1, std::memory_order_relaxed);  // as declared
  if (number < 0) return;
  if (!of_->is_inherited()) of_->stop_watching(number);  // close() alone does not end it while a duplicate is open
  close_file(number);
}

// Ends a use. The last user closes the number before it gives up its use: until then the memory is not reused for another file.
void descriptor::leave(std::uint32_t uses) noexcept {
  std::uint32_t before = use_.load(std::memory_order_acquire);  // <- left
  do {
    if (((before - uses) & ~owned) == 0) close_number();
  } while (!use_.compare_exchange_weak(before, before - uses,
                                       std::memory_order_release,  // -> left
                                       std::memory_order_acquire));  // <- left
  if (before != uses) return;
  ended_.store((std::uint32_t{generation()} + 1) << 16, std::memory_order_relaxed);  // as declared
  of_->give_back(*this);
}

}  // namespace weft::detail
