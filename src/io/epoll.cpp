#include "io/epoll.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <utility>
#include <weft/error.hpp>

#include "io/back_end.hpp"

namespace weft::detail {
namespace {

// User data: the descriptor's address and, in the upper 16 bits, which no user-space address uses, its generation.
std::uint64_t packed(const descriptor& one) noexcept {
  return reinterpret_cast<std::uintptr_t>(&one) | std::uint64_t{one.generation()} << 48;
}
descriptor* address_in(std::uint64_t word) noexcept {
  return reinterpret_cast<descriptor*>(word & ((std::uint64_t{1} << 48) - 1));  // NOLINT: an address, as packed
}

int made(int number, const char* what) {
  if (number < 0) throw error{std::error_code{errno, std::generic_category()}, what};
  return number;
}

// Rounded up: a worker that woke before the time would go to sleep again and again until it comes. -1: no limit.
int milliseconds_until(epoll::time_point until) noexcept {
  if (until == until.max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

}  // namespace

epoll::epoll()
    : set_{made(::epoll_create1(EPOLL_CLOEXEC), "make an epoll set")},
      wake_fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
  epoll_event each{.events = EPOLLIN | EPOLLET, .data = {.u64 = 0}};
  if (wake_fd_ < 0 || ::epoll_ctl(set_, EPOLL_CTL_ADD, wake_fd_, &each) != 0) {
    const int refused = errno;
    if (wake_fd_ >= 0) ::close(wake_fd_);
    ::close(set_);
    throw error{std::error_code{refused, std::generic_category()}, "make an epoll set"};
  }
}

epoll::~epoll() {
  if (!is_inherited()) wait_for_visitors();
  WEFT_EXPECTS(
      is_inherited() || watched() == 0,
      "a runtime was destroyed before a stream, a listener or another descriptor that was made in it, and that "
      "still uses the runtime");
  ::close(wake_fd_);
  ::close(set_);
}

int epoll::begin_to_watch(descriptor& one) noexcept {
  one.is_armed_from_the_beginning();
  epoll_event each{.events = EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.u64 = packed(one)}};
  if (::epoll_ctl(set_, EPOLL_CTL_ADD, one.number(), &each) == 0) return 0;
  // The set has a number that was forgotten as another file's, and names the first file again, which a duplicate has kept open.
  if (errno == EEXIST && !is_watched_by_another(one) && ::epoll_ctl(set_, EPOLL_CTL_MOD, one.number(), &each) == 0)
    return 0;
  return errno;
}

void epoll::stop_watching(int number) noexcept { ::epoll_ctl(set_, EPOLL_CTL_DEL, number, nullptr); }

void epoll::wait_alone(time_point until, changes& into) noexcept {
  epoll_event events[changes::most];
  const int found = ::epoll_wait(set_, events, changes::most, milliseconds_until(until));  // EINTR counts as no change
  into.count_ = 0;
  for (int i = 0; i < found; ++i)
    if (descriptor* const of = address_in(events[i].data.u64); of != nullptr)  // null: the eventfd
      into.list_[into.count_++] = {
          .of = of, .generation = static_cast<std::uint16_t>(events[i].data.u64 >> 48), .events = events[i].events};
  const auto count = static_cast<std::uint64_t>(into.count_);
  waits_.store(waits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);          // as declared
  changes_.store(changes_.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);  // as declared
}

void epoll::changes::report() noexcept {
  for (int i = 0; i != count_; ++i) {
    const change& one = list_[i];
    // After an error the next try in either direction fails with it; the connection need not have ended.
    const bool all = (one.events & EPOLLHUP) != 0, failed = (one.events & EPOLLERR) != 0;
    // A receive of all ends before an urgent byte, also if nothing follows that yet.
    one.of->report(one.generation, {.in = failed || (one.events & (EPOLLIN | EPOLLPRI)) != 0,
                                    .out = failed || (one.events & EPOLLOUT) != 0,
                                    .in_ended = all || (one.events & EPOLLRDHUP) != 0,
                                    .out_ended = all,
                                    .urgent = (one.events & EPOLLPRI) != 0});
  }
  count_ = 0;
}

void epoll::interrupt() noexcept {
  const std::uint64_t one = 1;
  interrupts_.fetch_add(1, std::memory_order_relaxed);      // as declared
  static_cast<void>(!::write(wake_fd_, &one, sizeof one));  // fails only after 2^64 of them
}

epoll::counts epoll::so_far() const noexcept {
  return {.waits = waits_.load(std::memory_order_relaxed),  // as declared
          .changes = changes_.load(std::memory_order_relaxed),
          .interrupts = interrupts_.load(std::memory_order_relaxed)};
}

// ---- a worker's sleep ---------------------------------------------------------------------------------------------------------

void epoll_parker::commit(time_point until) noexcept {
  if (set_->wait(until, changes_, [this] { return word_.fall_asleep(sleep_word::in_kernel); })) {
    word_.rise();
  } else if (word_.fall_asleep(sleep_word::on_word)) {
    word_.sleep_on_word(until);
  }
}

void epoll_parker::wake() noexcept {
  word_.wake([&set = *set_] { set.interrupt(); });
}

// Reports what the last sleep in the set collected. Calls the system only between jobs: a worker that has found no job calls it
// anyway when it falls asleep.
bool epoll_parker::poll(bool between_jobs) noexcept {
  if (between_jobs && changes_.empty()) set_->wait({}, changes_, [] { return true; });
  if (std::exchange(was_idle_, false)) guard_->has_left();  // whatever has woken it
  if (changes_.empty()) return false;
  changes_.report();
  return true;
}

// ---- the back end -------------------------------------------------------------------------------------------------------------

namespace {

class epoll_back_end final : public back_end {
 public:
  io_service& service() noexcept override { return set_; }
  parker& parker_of(unsigned) override { return parkers_.emplace_back(set_, guard_); }
  void begin(pool_core& workers) noexcept override { guard_.begin(workers); }
  void end() noexcept override { guard_.end(); }
  void begin_here() override { found_ = std::make_unique<epoll::changes>(); }
  bool look() noexcept override {
    return set_.watched() != 0 && set_.wait({}, *found_, [] { return true; }) && !found_->empty();
  }
  void report() noexcept override { found_->report(); }
  io_backend kind() const noexcept override { return io_backend::epoll; }
  io_stats stats() const noexcept override {
    const auto [waits, changes, interrupts] = set_.so_far();
    return {.watched = set_.watched(), .waits = waits, .changes = changes, .interrupts = interrupts};
  }
  std::string explain(unsigned workers) const override {
    if (workers == 1) return "Its worker sleeps in an edge-triggered set when it has nothing to do.";
    return std::to_string(workers) +
           " workers share one edge-triggered set; one that has nothing to do sleeps in it, the others on a futex.";
  }

 private:
  epoll set_;
  epoll_guard guard_{set_};
  std::deque<epoll_parker> parkers_;
  std::unique_ptr<epoll::changes> found_;  // by look()
};

}  // namespace

std::unique_ptr<back_end> make_epoll_back_end() { return std::make_unique<epoll_back_end>(); }

}  // namespace weft::detail
