#include "stack/stack_overflow.hpp"

#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <weft/detail/context/context.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "base/unloading.hpp"
#include "core/worker.hpp"
#include "stack/stack_region.hpp"
#include "trace/symbols.hpp"

namespace weft::detail {
namespace {

// The type between the brackets of "... [with F = main()::<lambda()>]" or "... [F = (lambda at a.cpp:3:5)]".
std::string_view type_in(std::string_view signature) noexcept {
  const auto from = signature.rfind("F = ");
  if (from == std::string_view::npos) return signature;
  signature.remove_prefix(from + 4);
  return signature.substr(0, signature.find_first_of("];"));
}

template <class Put>
void describe_user(const stack_user& who, bool demangled, symbolizer& symbols, Put put) {
  if (who.code != nullptr)
    describe(symbols.find(who.code), demangled, put);
  else
    put(type_in(who.type != nullptr ? who.type : "F = a function that is not known"));
}

// Prints by write(2), since it does so in a signal handler.
class sentence {
 public:
  sentence& operator<<(std::string_view text) noexcept {
    size_ += text.copy(text_ + size_, sizeof text_ - size_);
    return *this;
  }
  sentence& operator<<(std::size_t number) noexcept {
    char digits[20];
    const char* end = std::to_chars(digits, std::end(digits), number).ptr;
    return *this << std::string_view{digits, end};
  }
  void print() const noexcept {
    if (::write(STDERR_FILENO, text_, size_) < 0) return;  // nobody reads stderr, so nothing more can be said
  }

 private:
  char text_[2048];
  std::size_t size_ = 0;
};

constexpr std::size_t kibibytes(std::size_t bytes) noexcept { return (bytes + 1023) / 1024; }

std::uintptr_t stack_pointer_of(const void* context) noexcept {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(registers.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return registers.sp;
#else
  return registers.__gregs[REG_SP];
#endif
}

struct sigaction before_us[2];  // SIGSEGV, SIGBUS: written before the handlers are there

// A fault in the guard of a stack, or just below it, by code that runs on that stack.
void on_fault(int signal, siginfo_t* info, void* context) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const std::uintptr_t stack_pointer = stack_pointer_of(context);
  if (stack_region* in = stack_region::of(info->si_addr)) {
    const std::size_t slot = in->slot_of(info->si_addr);
    stack_header& one = in->header_of(slot);
    const auto begin = reinterpret_cast<std::uintptr_t>(in->slot_begin(slot));
    const bool in_guard = at < begin + in->guard_bytes();
    const auto top = reinterpret_cast<std::uintptr_t>(&one);
    // A slot that nothing ever ran on has a guard, too, but no header. A function with a large frame has moved the stack
    // pointer first, perhaps below the slot.
    if (in_guard && one.region == in && stack_pointer < top &&
        top - stack_pointer < in->slot_bytes() + (std::size_t{1} << 30))
      fail_overflow(one, top - std::min(at, stack_pointer), naming::mangled);
  }
  const struct sigaction& before = before_us[signal == SIGSEGV ? 0 : 1];
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  ::sigaction(signal, &before, nullptr);  // the instruction runs again, and the fault goes to the previous handler
}

// When the library is unloaded, on_fault() goes, so the previous handlers are restored.
[[gnu::destructor(unloads_handlers)]] void restore_handlers() noexcept {
  for (const int signal : {SIGSEGV, SIGBUS}) {
    struct sigaction now{};
    if (::sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault)
      ::sigaction(signal, &before_us[signal == SIGSEGV ? 0 : 1], nullptr);
  }
}

void watch_faults() noexcept {
  static const bool once = [] {
    struct sigaction action{};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(SIGSEGV, nullptr, &before_us[0]);
    ::sigaction(SIGBUS, nullptr, &before_us[1]);
    ::sigaction(SIGSEGV, &action, nullptr);
    ::sigaction(SIGBUS, &action, nullptr);
    return true;
  }();
  static_cast<void>(once);
}

// Finds the distance of the exception globals from the thread pointer; see context.hpp.
void note_exception_globals() noexcept {
  const std::ptrdiff_t offset = reinterpret_cast<char*>(&exception_globals_of_thread()) - thread_pointer();
  static const std::ptrdiff_t first = [offset] {
    exception_globals_offset.store(offset, std::memory_order_relaxed);  // each thread runs this before its first switch
    return offset;
  }();
  if (offset != first) exception_globals_offset.store(0, std::memory_order_relaxed);  // as declared
}

}  // namespace

std::string name_of(const stack_user& who) {
  std::string name;
  symbolizer symbols;
  describe_user(who, true, symbols, [&](std::string_view text) { name += text; });
  return name;
}

void fail_overflow(const stack_header& one, std::size_t bytes, naming how) noexcept {
  static symbolizer symbols;  // large, so not on the stack; and used once
  sentence text;
  text << "weft: a stack ran over: ";
  if (one.name != nullptr) text << "'" << one.name << "', which runs ";
  describe_user(one.user, how == naming::demangled, symbols, [&](std::string_view name) { text << name; });
  const std::size_t size = one.region != nullptr ? std::bit_floor(one.usable()) : one.usable();  // what was asked for
  text << ". It has " << kibibytes(size) << " KiB of stack and needed " << kibibytes(bytes)
       << " KiB or more: give it a larger size, or run the deep part of it with call_on_stack\n";
  text.print();
  std::abort();
}

namespace {

// Gives the thread an alternate signal stack, on which an overflow of a stack of weft's is reported. May change errno.
void take_signal_stack(stack_slot& here) noexcept {
  stack_t now{};
  if (::sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) == 0) return;  // the program has its own
  const std::size_t bytes = (std::size_t{48} << 10) + ((::getauxval(AT_MINSIGSTKSZ) + 4095) & ~std::size_t{4095});
  if (here.signal_stack == nullptr) {
    void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return;  // an overflow then ends the program without a sentence
    here.signal_stack = mapped;
    here.signal_stack_bytes = bytes;
  }
  now = {.ss_sp = here.signal_stack, .ss_flags = 0, .ss_size = bytes};
  here.signal_stack_is_in_use = ::sigaltstack(&now, nullptr) == 0;
}

}  // namespace

// Called before a thread's first switch to a stack. Keeps errno, which its caller may be about to read.
void prepare_thread_for_stacks() noexcept {
  const int kept = errno;
  watch_faults();
  note_exception_globals();
  worker& here = this_worker();
  if (!ready_for_stacks) {
    ready_for_stacks = true;
    readiness_offset.store(reinterpret_cast<char*>(&ready_for_stacks) - thread_pointer(),
                           std::memory_order_relaxed);  // as declared
    take_signal_stack(here.stacks);
  }
  errno = kept;
}

// The next thread of this worker gets the signal stack, so this thread must not keep it.
void stack_slot::leave() noexcept {
  signal_stack_is_in_use = false;
  stack_t now{};
  if (::sigaltstack(nullptr, &now) != 0 || signal_stack == nullptr || now.ss_sp != signal_stack) return;
  now = {.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
  ::sigaltstack(&now, nullptr);
}

void stack_slot::end() noexcept {
  if (signal_stack != nullptr && !signal_stack_is_in_use) ::munmap(signal_stack, signal_stack_bytes);
}

}  // namespace weft::detail
