// Signals: a handler for each signal that is heard, one eventfd for all of them, and watches that compare counts.
//
// The handler adds one to the count of its signal, then writes to the eventfd. Each watch has a duplicate of the eventfd, which
// the I/O service of the watch's maker polls edge-triggered. Nobody reads the eventfd, since each write is a change. A watch that
// is woken compares the counts with the numbers of signals that it has given out.
//
// A forked child has the handler, and shares the parent's eventfd. A signal to the child is not the parent's: so the handler does
// nothing in a process other than the one that made the eventfd. The first watch in the child makes a new eventfd. In a child of
// vfork(), which shares the parent's memory, the handler counts nothing either.
//
// A signal that only `interrupted` waits for gets its default action back when it comes: by SA_RESETHAND, with which the system
// resets the action as it calls the handler. Rejected: the handler resets it, since another thread may install the handler anew
// in between.
#include <weft/signals.hpp>

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <vector>
#include <weft/error.hpp>
#include <weft/net.hpp>

namespace weft {
namespace {
namespace hearing {

std::error_code refusal(int number) noexcept { return {number, std::generic_category()}; }

constexpr int signal_count = 65;  // SIGRTMAX is 64
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// Relaxed: the handler writes to the eventfd after it has counted, and the kernel orders that write before the change it reports.
std::atomic<std::uint32_t> came[signal_count];
std::atomic<int> event_number{-1};  // relaxed: event_process has the edge
// The process that has made the eventfd.
//   edge event  the number of its eventfd  ->  the handler in that process. No model: a handler in a child that was forked
std::atomic<::pid_t> event_process{0};
static_assert(std::atomic<::pid_t>::is_always_lock_free);

extern "C" void weft_count_signal(int number) {
  if (event_process.load(std::memory_order_acquire) != ::getpid()) return;  // <- event (no model: as declared)
  const int error_before = errno;
  came[number].fetch_add(1, std::memory_order_relaxed);  // as declared
  const std::uint64_t one = 1;
  const auto written = ::write(event_number.load(std::memory_order_relaxed), &one, sizeof one);  // as declared
  static_cast<void>(written);  // it fails only with the counter full, and then a change was reported already
  errno = error_before;
}

// The watches of a signal, and the action that it had before.
struct heard_signal {
  unsigned all = 0;             // all watches of this signal
  unsigned more_than_once = 0;  // of those, watches that go on after the first signal
  bool resets = false;          // the handler was installed with SA_RESETHAND
  struct sigaction before{};
};

std::mutex lock;  // guards all except what the handler uses
heard_signal heard[signal_count];

bool install(int number, struct sigaction* before) noexcept {
  struct sigaction ours{};
  ours.sa_handler = weft_count_signal;
  sigemptyset(&ours.sa_mask);
  ours.sa_flags = SA_RESTART | SA_ONSTACK;  // a fiber's stack may have no room for the handler
  heard_signal& of = heard[number];
  const bool resets = of.more_than_once == 0;
  if (resets) ours.sa_flags |= static_cast<int>(SA_RESETHAND);
  if (::sigaction(number, &ours, before) != 0) return false;
  of.resets = resets;
  return true;
}

bool is_ours(const struct sigaction& one) noexcept { return one.sa_handler == weft_count_signal; }

// Whether the program has installed this action since weft installed its handler. A default action may also be there because
// the system has put it back (SA_RESETHAND).
bool is_of_the_program(const struct sigaction& one, bool resets) noexcept {
  return !is_ours(one) && !(resets && one.sa_handler == SIG_DFL);
}

bool can_be_heard(int number) noexcept {
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    if (number == fault) return false;
  return number > 0 && number < signal_count;
}

void begin_to_hear(int number, bool once) {
  const std::lock_guard guard{lock};
  if (!can_be_heard(number)) throw error{refusal(EINVAL), "hear a signal", std::to_string(number)};
  heard_signal& of = heard[number];
  const bool did_reset = of.resets;
  if (!once) ++of.more_than_once;
  struct sigaction before;
  if (!install(number, &before)) {
    if (!once) --of.more_than_once;
    throw error{refusal(errno), "hear a signal", std::to_string(number)};
  }
  if (of.all++ == 0 || is_of_the_program(before, did_reset)) of.before = before;
}

void end_to_hear(int number, bool once) noexcept {
  const std::lock_guard guard{lock};
  heard_signal& of = heard[number];
  struct sigaction now;
  ::sigaction(number, nullptr, &now);
  const bool was_last_for_more = !once && --of.more_than_once == 0;
  if (--of.all == 0) {
    // An action that the program has installed meanwhile stays.
    if (!is_of_the_program(now, of.resets)) ::sigaction(number, &of.before, nullptr);
  } else if (was_last_for_more && is_ours(now)) {
    install(number, nullptr);
  }
}

// Never closed: a handler may be about to write to it; and in a child its number may be another file's by now.
int shared_event() {
  const std::lock_guard guard{lock};
  const ::pid_t here = ::getpid();
  if (event_process.load(std::memory_order_relaxed) == here)  // the lock orders it
    return event_number.load(std::memory_order_relaxed);      // the lock orders it
  const int number = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (number < 0) throw error{refusal(errno), "hear signals"};
  event_number.store(number, std::memory_order_relaxed);  // as declared
  event_process.store(here, std::memory_order_release);   // -> event (no model: as declared)
  return number;
}

}  // namespace hearing
}  // namespace

namespace detail {

class signal_watch {
 public:
  signal_watch(std::initializer_list<int> numbers, bool once) : event_{hearing::shared_event(), false}, once_{once} {
    signals_.reserve(numbers.size());
    for (const int number : numbers) {
      if (has(number)) continue;
      // Read before the handler is installed, so that each signal that comes after that is given out.
      const std::uint32_t before =
          hearing::can_be_heard(number) ? hearing::came[number].load(std::memory_order_relaxed) : 0;  // as declared
      begin_to_hear_or_end(number);
      signals_.push_back({number, before});
    }
  }
  signal_watch(const signal_watch&) = delete;
  ~signal_watch() { end(); }

  descriptor* at() const noexcept { return event_.get(); }

  /// Whether a signal has come that was not given out.
  bool has_some() const noexcept {
    for (const one_signal& one : signals_)
      if (one.came_so_far() != one.given) return true;
    return false;
  }
  /// The number of a signal that has come and was not given out, which it is now; 0: there is none.
  int take() noexcept {
    for (one_signal& one : signals_)
      if (const std::uint32_t now = one.came_so_far(); now != one.given) {
        one.given = now;
        return one.number;
      }
    return 0;
  }

 private:
  bool has(int number) const noexcept {
    for (const one_signal& one : signals_)
      if (one.number == number) return true;
    return false;
  }
  struct one_signal {
    std::uint32_t came_so_far() const noexcept { return hearing::came[number].load(std::memory_order_relaxed); }
    int number;
    std::uint32_t given;
  };

  void begin_to_hear_or_end(int number) {
    try {
      hearing::begin_to_hear(number, once_);
    } catch (...) {
      end();
      throw;
    }
  }
  void end() noexcept {
    for (const one_signal& one : signals_) hearing::end_to_hear(one.number, once_);
    signals_.clear();
  }

  twin event_;
  bool once_;
  std::vector<one_signal> signals_;
};

void delete_signal_watch::operator()(signal_watch* one) const noexcept { delete one; }

bool awaiting_signal::may_try() const noexcept { return at->may_try(which()) || watch->has_some(); }

tried awaiting_signal::attempt() const noexcept {
  at->expect_change(which());
  const int number = watch->take();
  if (number == 0) return {.must_wait = true};
  return {.size = static_cast<std::size_t>(number)};
}

}  // namespace detail

signals::signals(std::initializer_list<int> numbers) : signals{numbers, false} {}
signals::signals(std::initializer_list<int> numbers, bool are_for_once)
    : watch_{new detail::signal_watch{numbers, are_for_once}}, at_{watch_->at()} {}

task<int> interrupted() {
  co_await check_stop();
  const signals both{{SIGINT, SIGTERM}, true};
  co_return co_await both.next();
}

}  // namespace weft
