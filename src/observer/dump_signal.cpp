#include "observer/dump_signal.hpp"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <weft/error.hpp>

namespace weft::detail {
namespace {

// The eventfd's number; -1: none, or in a child. Relaxed: the handler is installed after it was written, by a call of the system.
constinit std::atomic<int> asks_for_dump{-1};
static_assert(std::atomic<int>::is_always_lock_free);

constinit std::mutex signal_lock;  // of the following
int event_number = -1;
bool is_taken = false;
struct sigaction action_before;

extern "C" void weft_ask_for_dump(int) {
  const int error_before = errno;
  const int to = asks_for_dump.load(std::memory_order_relaxed);  // as declared
  const std::uint64_t one = 1;
  if (to >= 0) {
    [[maybe_unused]] const auto written = ::write(to, &one, sizeof one);
  }
  errno = error_before;
}

[[noreturn]] void refuse_signal(int number, const std::string& why) {
  throw error{std::error_code{number, std::generic_category()}, "have a signal ask for a dump", why};
}

}  // namespace

dump_signal::dump_signal(int number) : signal_{number} {
  const std::lock_guard held{signal_lock};
  if (is_taken) refuse_signal(EBUSY, "another observer has one");
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
    if (number == fault) refuse_signal(EINVAL, "it is one that a fault causes");
  if (event_number < 0) event_number = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_number < 0) refuse_signal(errno, "no eventfd");
  std::uint64_t asked_before = 0;
  [[maybe_unused]] const auto size = ::read(event_number, &asked_before, sizeof asked_before);
  asks_for_dump.store(event_number, std::memory_order_relaxed);  // as declared
  struct sigaction ours{};
  ours.sa_handler = weft_ask_for_dump;
  sigemptyset(&ours.sa_mask);
  ours.sa_flags = SA_RESTART | SA_ONSTACK;  // a fiber's stack may have no room for it
  if (::sigaction(number, &ours, &action_before) != 0) refuse_signal(errno, "signal " + std::to_string(number));
  is_taken = true;
  event_ = event_number;
}

dump_signal::~dump_signal() {
  const std::lock_guard held{signal_lock};
  struct sigaction now{};
  if (::sigaction(signal_, nullptr, &now) == 0 && now.sa_handler == weft_ask_for_dump)
    ::sigaction(signal_, &action_before, nullptr);
  is_taken = false;
}

void hold_dump_signal() noexcept { signal_lock.lock(); }
void let_go_dump_signal() noexcept { signal_lock.unlock(); }

void forget_dump_signal() noexcept {
  asks_for_dump.store(-1, std::memory_order_relaxed);  // as declared
  if (event_number >= 0) ::close(std::exchange(event_number, -1));
  is_taken = false;
  signal_lock.unlock();
}

}  // namespace weft::detail
