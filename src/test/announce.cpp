#include "test/announce.hpp"

#include <unistd.h>
#include <weft/detail/core/root.hpp>

#include <atomic>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>

// Sanitizers end a program without abort(), but call this callback before. Null: no sanitizer is linked.
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());  // NOLINT: its name

namespace weft::test::detail {
namespace {

std::atomic<const char*> place_in_sweep{nullptr};  // relaxed: a thread is set going in the sweep after this is set
struct sigaction before_abort, before_fault;

void say_place() noexcept {
  const char* where = place_in_sweep.exchange(nullptr, std::memory_order_relaxed);
  if (where == nullptr) return;
  const auto put = [](const char* text) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
  };
  put("weft: the program ends in a sweep, at ");
  put(where);
  put("\n");
}

void on_signal(int signal, siginfo_t* from, void* context) {
  say_place();
  const struct sigaction& before = signal == SIGABRT ? before_abort : before_fault;
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr)
    before.sa_sigaction(signal, from, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler(signal);
  else
    ::signal(signal, SIG_DFL);  // abort() raises the signal again, or the instruction faults again
}

}  // namespace

announced::announced(std::string where) : where_{std::move(where)} {
  static const bool once = [] {
    weft::detail::current_root();  // makes a worker, whose own handlers are installed first, and run last
    struct sigaction action{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    return ::sigaction(SIGABRT, &action, &before_abort) == 0 && ::sigaction(SIGSEGV, &action, &before_fault) == 0;
  }();
  static_cast<void>(once);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(say_place);
  place_in_sweep.store(where_.c_str(), std::memory_order_relaxed);
}

announced::~announced() { place_in_sweep.store(nullptr, std::memory_order_relaxed); }

}  // namespace weft::test::detail
