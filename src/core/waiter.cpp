#include <weft/detail/core/waiter.hpp>

#include "base/spin.hpp"
#include "core/claim.hpp"

namespace weft::detail {

constinit std::atomic<const wait_watch*> wait_watch::the_one{nullptr};

// ---- by the sleeper -----------------------------------------------------------------------------------------------------

// park() where a wait_watch is installed. Not inline, so that park() without one saves no registers.
WEFT_SELDOM bool sleeper::park_watched(const wait_watch& watch, waiter& one, bool forwarding) noexcept {
  watch.parking(*this);
  const bool answer = forwarding ? park_forwarding_now(one) : park_now(one);
  watch.parked(*this, forwarding || answer);
  return answer;
}

// park() of a sleeper that is shielded, or was told to stop.
WEFT_SELDOM bool sleeper::park_with_bits(waiter& one) noexcept {
  std::uint64_t word = word_.load(std::memory_order_acquire);  // <- asked
  const std::uint64_t ticket = begin_wait(one, word);
  if ((word & (stop_bit | shield_bit)) == stop_bit) return false;
  while (!word_.compare_exchange_weak(word, ticket | (word & (stop_bit | shield_bit)) | waiting,
                                      std::memory_order_release,     // -> park
                                      std::memory_order_relaxed)) {  // shielded: a stop leaves no more than its bit
  }
  return true;
}

bool sleeper::park(waiter& one) noexcept { return claim_here::park(*this, one); }

bool sleeper::park_forwarding(waiter& one) noexcept {
  if (const wait_watch* watch = wait_watch::now()) [[unlikely]]
    return park_watched(*watch, one, true);
  return park_forwarding_now(one);
}

inline bool sleeper::park_forwarding_now(waiter& one) noexcept {
  std::uint64_t word = word_.load(std::memory_order_relaxed);  // a guess: the exchange below decides
  const std::uint64_t ticket = begin_wait(one, word);
  while (!word_.compare_exchange_weak(word, ticket | (word & (stop_bit | shield_bit)) | waiting,
                                      std::memory_order_acq_rel,     // -> park, <- asked
                                      std::memory_order_relaxed)) {  // tried again
  }
  return (word & (stop_bit | shield_bit)) == stop_bit;
}

bool sleeper::shield(bool on) noexcept {
  // Relaxed: the sleeper's own bit, which carries no data.
  const std::uint64_t before = on ? word_.fetch_or(shield_bit, std::memory_order_relaxed)
                                  : word_.fetch_and(~shield_bit, std::memory_order_relaxed);
  return (before & shield_bit) != 0;
}

// ---- by wakers ------------------------------------------------------------------------------------------------------------

// Waits until the word is not held tentatively for this wait, and gives it.
WEFT_SELDOM std::uint64_t sleeper::decided(std::uint64_t ticket) noexcept {
  spin_wait wait;
  std::uint64_t word;
  do {
    wait.once();
    word = word_.load(std::memory_order_relaxed);  // a guess: the exchange of the caller decides
  } while ((word & (ticket_mask | state_mask)) == (ticket | tentative));
  return word;
}

inline void sleeper::go_on(wake_up how) noexcept {
  if (const wait_watch* watch = wait_watch::now()) [[unlikely]]
    return go_on_watched(*watch, how);
  wake_(*this, how);
}

WEFT_SELDOM void sleeper::go_on_watched(const wait_watch& watch, wake_up how) noexcept {
  if (!watch.waking(*this, how)) wake_(*this, how);
}

void wait_watch::wake(sleeper& claimed, wake_up how) noexcept { claimed.wake_(claimed, how); }

WEFT_SELDOM bool waiter::claim_with_bits() noexcept {
  return sleeper_->move(ticket_, sleeper::waiting, sleeper::running);
}

bool waiter::try_claim() noexcept {
  if (!claim_here::try_claim(*this)) return false;
  if (type_->on_claimed != nullptr) [[unlikely]]
    type_->on_claimed(*this);
  return true;
}

void stop_here::wake(sleeper& one) noexcept { one.go_on(wake_up::stopped); }

void waiter::wake(wake_up how) noexcept { sleeper_->go_on(how); }

void waiter::wake_as_ended(wake_up how) noexcept {
  if (how == wake_up::stopped && type_->on_stopped != nullptr) [[unlikely]]
    type_->on_stopped(*this);
  wake(how);
}

void waiter::finish(wake_up how) noexcept {
  sleeper* const self = sleeper_;
  const std::uint64_t ticket = ticket_;  // read first: after move() the sleeper, or the stopper, may end this waiter
  for (;;) {
    if (self->move(ticket, sleeper::waiting, sleeper::running)) return self->go_on(how);
    if (self->move(ticket, sleeper::stopping, how == wake_up::stopped ? sleeper::finished_stopped : sleeper::finished))
      return;
  }
}

// ---- by stoppers ------------------------------------------------------------------------------------------------------------

bool sleeper::request_stop() noexcept {
  const std::uint64_t told = set_stop_bit();
  if ((told & state_mask) == stopping && leave_wait(told)) go_on(wake_up::stopped);  // may be gone after this line
  return told != 0;
}

// Claims a wait that was held tentatively when the stop bit was set. False: there was none, or it has ended.
bool sleeper::claim_held_wait(std::uint64_t word) noexcept {
  return (word & (state_mask | shield_bit)) == tentative && move(word & ticket_mask, waiting, stopping);
}

// Has the wait leave that was claimed when the stop bit was set. A later wait saw the bit as it parked. True: it has left,
// and is to be woken as stopped.
bool sleeper::leave_wait(std::uint64_t told) noexcept {
  if (const wait_watch* watch = wait_watch::now()) [[unlikely]]
    watch->stopping(*this);
  if (current_->type_->leave(*current_) == on_stop::left) {
    has_left(told);
    return true;
  }
  const std::uint64_t ticket = told & ticket_mask;
  if (move(ticket, stopping, waiting)) return false;  // forwarded, and still waiting
  const bool completed = move(ticket, finished, running);
  if (!completed) move(ticket, finished_stopped, running);
  go_on(completed ? wake_up::completed : wake_up::stopped);  // may be gone after this line
  return false;
}

// ---- by readers -------------------------------------------------------------------------------------------------------------

held_wait::held_wait(sleeper& one) noexcept
    : sleeper_{one},
      ticket_{one.word_.load(std::memory_order_relaxed) & sleeper::ticket_mask},  // a guess: move() decides
      held_{one.move(ticket_, sleeper::waiting, sleeper::tentative)} {}

void held_wait::tell(wait_subjects& into) const noexcept {
  if (!held_) return;
  const waiter& one = *sleeper_.current_;
  const wait_type& type = *one.type_;
  type.tell != nullptr ? type.tell(one, type.name, into) : into.add(type.name, nullptr);
}

held_wait::~held_wait() {
  if (held_) sleeper_.move(ticket_, sleeper::tentative, sleeper::waiting);
}

}  // namespace weft::detail
