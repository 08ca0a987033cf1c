#include "observe/thread_probe.hpp"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>
#include <weft/detail/core/async_stack.hpp>
#include <weft/detail/core/root.hpp>

#include "core/worker.hpp"

namespace weft::detail {
namespace {

// Reads a file of the kernel's about a thread. Gives its text in `room`; empty: it can't be read.
std::span<const char> read_about(int thread, const char* name, std::span<char> room) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/%s", thread, name);
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  ssize_t length;
  do length = ::read(file, room.data(), room.size() - 1);
  while (length < 0 && errno == EINTR);
  ::close(file);
  if (length <= 0) return {};
  room[static_cast<std::size_t>(length)] = '\0';
  return room.first(static_cast<std::size_t>(length));
}

/// Reads memory of this process that may be gone, or change meanwhile: the kernel copies.
bool copy_memory(std::uint64_t from, void* into, std::size_t size) noexcept {
  const iovec to{.iov_base = into, .iov_len = size};
  const iovec at{.iov_base = reinterpret_cast<void*>(from), .iov_len = size};  // NOLINT: an address in this process
  return ::process_vm_readv(::getpid(), &to, 1, &at, 1, 0) == static_cast<ssize_t>(size);
}

// What stack_walk reads, by copies: the root may end on another thread meanwhile, also while the thread that has run it is
// interrupted.
void list_async(const worker& its, thread_calls& into) noexcept {
  std::uint64_t at = 0;
  if (!copy_memory(reinterpret_cast<std::uintptr_t>(&its.current), &at, sizeof at) || at == 0) return;
  into.root = at;
  alignas(root) std::array<std::byte, sizeof(root)> copy_of_root;
  alignas(boundary) std::array<std::byte, sizeof(boundary)> copy_of_frame;
  auto* const now = reinterpret_cast<root*>(copy_of_root.data());
  auto* const here = reinterpret_cast<const boundary*>(copy_of_frame.data());
  const auto address = [](std::coroutine_handle<> one) { return reinterpret_cast<std::uintptr_t>(one.address()); };
  if (!copy_memory(at, copy_of_root.data(), copy_of_root.size())) return;
  std::uint64_t frame = address(now->top);
  bool is_in_root = true;
  const auto end_of_root = [&] {
    if (std::exchange(is_in_root, false)) into.in_root = into.async_count;
  };
  for (int steps = 0; steps != 1000 && into.async_count != into.async.size(); ++steps) {
    if (frame == 0) {  // on in the root that waits for this one
      end_of_root();
      at = reinterpret_cast<std::uintptr_t>(now->parent);
      const bool is_fork = now->is_fork;
      if (at == 0 || !copy_memory(at, copy_of_root.data(), copy_of_root.size())) return;
      if (is_fork) {  // its parent, the body of a scope, does not wait for it
        at = reinterpret_cast<std::uintptr_t>(now->parent);
        if (at == 0 || !copy_memory(at, copy_of_root.data(), copy_of_root.size())) return;
      }
      frame = address(now->top);
      continue;
    }
    if (!copy_memory(frame, copy_of_frame.data(), copy_of_frame.size())) return;
    const auto any = std::coroutine_handle<>::from_address(copy_of_frame.data());
    if (const root* const ended = root::ended_by(any); ended != nullptr) {
      end_of_root();
      at = reinterpret_cast<std::uintptr_t>(ended);
      if (!copy_memory(at, copy_of_root.data(), copy_of_root.size())) return;
      frame = address(now->after_end());
      continue;
    }
    if (is_in_root && into.in_fiber > into.async_count && is_of_fiber(*here)) into.in_fiber = into.async_count;
    if (here->destroy != boundary::arrive_stopped && here->resume != nullptr)
      into.async[into.async_count++] = reinterpret_cast<const void*>(here->resume);
    frame = address(here->continuation);
  }
  if (into.async_count == into.async.size()) end_of_root();  // the innermost, of more
}

}  // namespace

void list_async_calls(const worker& its, thread_calls& into) noexcept {
  list_async(its, into);
  into.is_there = true;
}

thread_state state_of(int thread) noexcept {
  thread_state state;
  char text[512];
  if (read_about(thread, "stat", text).empty()) return state;
  const char* const name_ends = std::strrchr(text, ')');
  if (name_ends == nullptr || name_ends[1] == '\0') return state;
  state.can_run = name_ends[2] == 'R';
  if (read_about(thread, "syscall", text).empty()) return state;
  state.is_known = true;
  if (std::strncmp(text, "running", 7) == 0) {
    state.can_run = true;
    return state;
  }
  // "number argument * 6 stack code", or "-1 stack code" where it waits in no call.
  char* at = text;
  state.system_call = std::strtol(at, &at, 10);
  std::uint64_t before = 0, last = 0;
  for (char* end; *at != '\0' && *at != '\n'; at = end) {
    before = last;
    last = std::strtoull(at, &end, 16);
    if (end == at) break;
  }
  state.stack = before;
  state.code = last;
  return state;
}

std::uint64_t time_run_by(int thread) noexcept {
  constexpr clockid_t of_a_thread = 4, scheduled = 2;
  timespec used;
  if (::clock_gettime((~clockid_t{thread} << 3) | of_a_thread | scheduled, &used) != 0) return 0;
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(used.tv_nsec);
}

std::uint64_t time_in_line_of(int thread) noexcept {
  char text[128];
  if (read_about(thread, "schedstat", text).empty()) return 0;
  const char* const first_ends = std::strchr(text, ' ');  // "<ran> <waited> <times>"
  return first_ends != nullptr ? std::strtoull(first_ends, nullptr, 10) : 0;
}

// ---- by the thread itself ---------------------------------------------------------------------------------------------------

namespace {

/// One question at a time. The word has the thread that is asked, so that one which answers late does not take the next one's.
///   edge asked     the question                    ->  the handler
///   edge answered  what the handler has written    ->  who asked. No model, both: a handler of signals.
struct question {
  static constexpr std::uint64_t none = 0, being_answered = 1, answered = 2;
  static std::uint64_t asked_of(int thread) noexcept {
    return std::uint64_t{static_cast<std::uint32_t>(thread)} << 2 | 3;
  }
  std::atomic<std::uint64_t> state{none};
  thread_calls calls;
};
constinit question the_question;

struct native_walk {
  thread_calls& into;
  std::uintptr_t code;  // where the signal has come in
  bool has_come_there = false;
};

_Unwind_Reason_Code note_call(_Unwind_Context* context, void* with) noexcept {
  auto& walk = *static_cast<native_walk*>(with);
  int before = 0;
  const std::uintptr_t code = ::_Unwind_GetIPInfo(context, &before);
  if (code == 0) return _URC_END_OF_STACK;
  walk.has_come_there = walk.has_come_there || code == walk.code;
  if (!walk.has_come_there) return _URC_NO_REASON;  // the handler's own
  if (walk.into.native_count == walk.into.native.size()) return _URC_END_OF_STACK;
  // A return address is behind the call: one less is in the function that has called.
  walk.into.native[walk.into.native_count++] = reinterpret_cast<const void*>(before != 0 ? code : code - 1);  // NOLINT
  return _URC_NO_REASON;
}

std::uintptr_t code_in(const void* context) noexcept {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return machine.pc;
#elif defined(__riscv)
  return machine.__gregs[REG_PC];
#else
  return 0;
#endif
}

void answer(thread_calls& into, const void* context) noexcept {
  native_walk walk{into, code_in(context)};
  ::_Unwind_Backtrace(note_call, &walk);
  if (into.native_count == 0 && walk.code != 0)
    into.native[into.native_count++] = reinterpret_cast<const void*>(walk.code);  // NOLINT: an address of code
  // A task that is about to leave this thread may go on, and end, on another one: so `current` is followed by copies.
  if (const worker* const here = worker_of_thread; here != nullptr) list_async(*here, into);
  into.is_there = true;
}

constinit struct sigaction sigprof_before{};

void on_signal(int number, siginfo_t* what, void* context) noexcept {
  const int kept = errno;
  std::uint64_t state = question::asked_of(::gettid());
  if (what->si_code == SI_TKILL && what->si_pid == ::getpid() &&
      the_question.state.compare_exchange_strong(state, question::being_answered,
                                                 std::memory_order_acquire,     // <- asked (no model: as declared)
                                                 std::memory_order_relaxed)) {  // another one is asked, or nobody
    answer(the_question.calls, context);
    the_question.state.store(question::answered, std::memory_order_release);  // -> answered (no model: as declared)
  } else if ((sigprof_before.sa_flags & SA_SIGINFO) != 0) {
    if (sigprof_before.sa_sigaction != nullptr) sigprof_before.sa_sigaction(number, what, context);
  } else if (sigprof_before.sa_handler != SIG_DFL && sigprof_before.sa_handler != SIG_IGN) {
    sigprof_before.sa_handler(number);
  }  // by default it would end the process: a late signal of ours must not
  errno = kept;
}

bool is_handled_here(const struct sigaction& one) noexcept {
  return (one.sa_flags & SA_SIGINFO) != 0 && one.sa_sigaction == on_signal;
}

bool had_handler() noexcept {
  return (sigprof_before.sa_flags & SA_SIGINFO) != 0 ||
         (sigprof_before.sa_handler != SIG_DFL && sigprof_before.sa_handler != SIG_IGN);
}

_Unwind_Reason_Code stop_at_once(_Unwind_Context*, void*) noexcept { return _URC_END_OF_STACK; }

/// Whose turn it is to ask, or to begin and end with that. A child of fork() takes over what a thread of its parent had.
class turn {
 public:
  turn() noexcept {
    const ::pid_t process = ::getpid();
    for (::pid_t who = 0; !whose.compare_exchange_weak(who, process,
                                                       std::memory_order_acquire,    // <- turn (no model: a lock)
                                                       std::memory_order_relaxed);)  // looked at here
      if (who == process) {
        constexpr timespec a_while{.tv_sec = 0, .tv_nsec = 50'000};
        ::nanosleep(&a_while, nullptr);
        who = 0;
      }
  }
  turn(const turn&) = delete;
  ~turn() { whose.store(0, std::memory_order_release); }  // -> turn (no model: a lock)

 private:
  // The process that has a thread at it; 0: none.
  //   edge turn   all that is asked, answered and counted  ->  whoever is next
  static constinit std::atomic<::pid_t> whose;
};
constinit std::atomic<::pid_t> turn::whose{0};

constinit unsigned probers = 0;  // by whose turn it is

}  // namespace

void begin_probing() noexcept {
  const turn mine;
  if (probers++ != 0) return;
  ::_Unwind_Backtrace(stop_at_once, nullptr);  // what the unwinder does once, it does not do in a handler
  struct sigaction before{};
  ::sigaction(SIGPROF, nullptr, &before);
  if (is_handled_here(before)) return;  // it has stayed, and would call itself if it were taken for the one before it
  sigprof_before = before;
  struct sigaction ours{};
  ours.sa_sigaction = on_signal;
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;  // a fiber's stack may have no room
  sigemptyset(&ours.sa_mask);
  ::sigaction(SIGPROF, &ours, nullptr);
}

// The default action of a signal that comes late would end the process: where there was no handler, ours stays, and does nothing.
// One that has been set meanwhile stays, too.
void end_probing() noexcept {
  const turn mine;
  if (--probers != 0) return;
  struct sigaction now{};
  if (had_handler() && ::sigaction(SIGPROF, nullptr, &now) == 0 && is_handled_here(now))
    ::sigaction(SIGPROF, &sigprof_before, nullptr);
}

// Where the library is unloaded, on_signal() is gone. A signal that comes late is to do nothing, as with it.
[[gnu::destructor]] static void forget_probes() noexcept {
  struct sigaction now{}, ignored{};
  ignored.sa_handler = SIG_IGN;
  if (::sigaction(SIGPROF, nullptr, &now) != 0 || !is_handled_here(now)) return;
  ::sigaction(SIGPROF, had_handler() ? &sigprof_before : &ignored, nullptr);
}

void list_calls_of(int thread, thread_calls& into) noexcept {
  const turn mine;
  question& ours = the_question;
  std::uint64_t state = question::asked_of(thread);
  ours.calls = {};
  ours.state.store(state, std::memory_order_release);  // -> asked (no model: as declared)
  constexpr timespec a_while{.tv_sec = 0, .tv_nsec = 50'000};
  const auto is_answered = [&] {
    return ours.state.load(std::memory_order_acquire) == question::answered;  // <- answered (no model: as declared)
  };
  if (::syscall(SYS_tgkill, ::getpid(), thread, SIGPROF) == 0)
    for (int i = 0; i != 2000 && !is_answered(); ++i) ::nanosleep(&a_while, nullptr);       // a tenth of a second
  if (ours.state.compare_exchange_strong(state, question::none, std::memory_order_relaxed,  // it has read nothing
                                         std::memory_order_relaxed))                        // looked at below
    return;
  while (!is_answered()) ::nanosleep(&a_while, nullptr);
  into = ours.calls;
  ours.state.store(question::none, std::memory_order_relaxed);  // nobody else looks
}

// ---- from outside -------------------------------------------------------------------------------------------------------------

namespace {

/// The parts of memory that have code: of the program and its libraries.
struct code_ranges {
  struct range {
    std::uint64_t begin = 0, end = 0;
  };
  std::array<range, 256> all{};
  std::size_t count = 0;

  code_ranges() noexcept {
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* with) -> int {
          auto& mine = *static_cast<code_ranges*>(with);
          for (int i = 0; i != info->dlpi_phnum && mine.count != mine.all.size(); ++i) {
            const ElfW(Phdr) & part = info->dlpi_phdr[i];
            if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
            const std::uint64_t begin = info->dlpi_addr + part.p_vaddr;
            mine.all[mine.count++] = {begin, begin + part.p_memsz};
          }
          return 0;
        },
        this);
  }
  bool have(std::uint64_t address) const noexcept {
    return std::any_of(all.begin(), all.begin() + count,
                       [=](const range& one) { return one.begin + 8 <= address && address < one.end; });
  }
};

// Whether a call stands right before this address, as the processor encodes one.
bool is_behind_call(std::uint64_t address) noexcept {
  unsigned char before[8];
  if (!copy_memory(address - sizeof before, before, sizeof before)) return false;
#if defined(__x86_64__)
  if (before[3] == 0xe8) return true;  // call to a distance of 32 bits
  // Calls by a register or memory: ff /2, of two to seven bytes.
  for (int length = 2; length <= 7; ++length)
    if (before[8 - length] == 0xff && (before[9 - length] >> 3 & 7) == 2) {
      const int mode = before[9 - length] >> 6, operand = before[9 - length] & 7;
      const int bytes = 2 + (mode != 3 && operand == 4 ? 1 : 0) +
                        (mode == 1                                  ? 1
                         : mode == 2 || (mode == 0 && operand == 5) ? 4
                                                                    : 0);
      if (bytes == length) return true;
    }
  return false;
#elif defined(__aarch64__)
  std::uint32_t instruction;
  std::memcpy(&instruction, before + 4, sizeof instruction);
  return (instruction & 0xfc000000) == 0x94000000 || (instruction & 0xfffffc1f) == 0xd63f0000;  // bl, blr
#else
  return true;
#endif
}

}  // namespace

void guess_calls_of(int thread, const thread_state& seen, const worker& its, thread_calls& into) noexcept {
  const code_ranges code;
  if (seen.code != 0)
    into.native[into.native_count++] = reinterpret_cast<const void*>(seen.code);  // NOLINT: an address
  constexpr std::size_t most_words = 4096;                                        // 32 KiB of the stack
  std::array<std::uint64_t, 64> words;
  for (std::size_t done = 0; done < most_words && into.native_count != into.native.size(); done += words.size()) {
    if (!copy_memory(seen.stack + done * sizeof(std::uint64_t), words.data(), sizeof words))
      break;  // the stack begins here
    for (const std::uint64_t word : words)
      if (code.have(word) && is_behind_call(word) && into.native_count != into.native.size())
        into.native[into.native_count++] = reinterpret_cast<const void*>(word - 1);  // NOLINT: an address of code
  }
  list_async(its, into);
  const thread_state now = state_of(thread);
  if (now.system_call == seen.system_call && now.stack == seen.stack && now.code == seen.code)
    into.is_there = true;
  else
    into = {};
}

}  // namespace weft::detail
