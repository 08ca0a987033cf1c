// Writes the flight recorder's rings into a file; recording.hpp has the format. The same code does so on demand and in the
// handler of a crash, where it may neither allocate nor wait for anybody: so what it needs is in one object, and it calls
// nothing but the system.
#include <weft/recorder.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <weft/detail/core/async_stack.hpp>
#include <weft/error.hpp>
#include <weft/recording.hpp>

#include "base/fence.hpp"
#include "base/unloading.hpp"
#include "observe/recording_format.hpp"
#include "trace/event_ring.hpp"
#include "trace/symbols.hpp"

namespace weft {
namespace detail {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

/// A path, where a handler of signals finds it.
class kept_path {
 public:
  void set(const char* path) {
    const std::size_t length = path != nullptr ? std::strlen(path) : 0;
    if (length >= sizeof text_)
      throw error{std::make_error_code(std::errc::filename_too_long), "save a recording", {path, length}};
    is_set_.store(false, std::memory_order_relaxed);  // nobody finds half of it
    full_fence();                                     // between that and the text (no model: as declared)
    if (path == nullptr) return;
    std::memcpy(text_, path, length + 1);
    is_set_.store(length != 0, std::memory_order_release);  // -> path (no model: as declared)
  }
  /// Null: there is none.
  const char* get() const noexcept {
    return is_set_.load(std::memory_order_acquire) ? text_ : nullptr;  // <- path (no model: as declared)
  }

 private:
  char text_[4096]{};
  //   edge path  the text  ->  a thread that crashes. No model: a handler of signals.
  std::atomic<bool> is_set_{false};
};

struct crash_facts {
  recording::reason why = recording::reason::asked_for;
  int signal = 0;
  const void* address = nullptr;
};

class recording_writer {
 public:
  /// 0, or errno.
  int write(const char* path, const crash_facts& facts, bool names) noexcept {
    file_ = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file_ < 0) return errno;
    failed_ = 0;
    used_ = 0;
    names_ = names;
    known_.fill(0);  // not by a copy, for which the stack that signals have may be too small
    header(facts);
    std::uint32_t number = 0;
    for (const event_ring* one = newest_ring(); one != nullptr; one = one->made_before) ring(*one, number++);
    maps();
    begin(section::end, 0);
    flush();
    if (::close(file_) != 0 && failed_ == 0) failed_ = errno;
    return failed_;
  }

 private:
  void header(const crash_facts& facts) noexcept {
    file_header head;
    head.why = static_cast<std::uint32_t>(facts.why);
    head.process = static_cast<std::uint64_t>(::getpid());
    head.signal = static_cast<std::uint64_t>(facts.signal);
    head.address = reinterpret_cast<std::uintptr_t>(facts.address);
    head.began = first_stamp();
    head.written = stamp_pair::now();
    put(&head, sizeof head);
  }

  // Who has written the oldest events up to `end`: who was there before the first one that says that it begins.
  std::uint32_t first_thread(const event_ring& one, std::uint64_t end) noexcept {
    const std::uint32_t now = one.thread.load(std::memory_order_relaxed);  // as declared
    for (std::uint64_t from = 0; from < end;) {
      const std::size_t count = one.copy(from, events_.data(), events_.size());
      for (std::size_t i = 0; i != count; ++i)
        if (events_[i].kind == event_kind::thread) return static_cast<std::uint32_t>(events_[i].first);
      from += count;
    }
    return now;
  }

  void ring(const event_ring& one, std::uint32_t number) noexcept {
    const std::uint64_t end = one.written();  // what comes later is left out, so this ends
    std::uint32_t thread = first_thread(one, end);
    for (std::uint64_t from = 0; from < end;) {
      const std::size_t count = one.copy(from, events_.data(), events_.size());
      if (count == 0) continue;
      for (std::size_t i = 0; i != count;) {  // a section for each thread that had the ring
        std::size_t last = i;
        if (events_[i].kind == event_kind::thread) thread = events_[i].number;
        do ++last;
        while (last != count && events_[last].kind != event_kind::thread);
        const ring_part part{.thread = thread, .ring = number, .first = from + i};
        begin(section::events, sizeof part + (last - i) * sizeof(recorded_event));
        put(&part, sizeof part);
        put(&events_[i], (last - i) * sizeof(recorded_event));
        name_thread(thread);
        for (; i != last; ++i) explain(events_[i]);
      }
      from += count;
    }
  }

  // Writes what an event refers to by an address.
  void explain(const recorded_event& one) noexcept {
    switch (named_by(one.kind)) {
      case named::text: return text(one.second);
      case named::function: return function(one.second);
      case named::nothing: return;
    }
  }

  // Whether it was not written before; a guess where there are very many.
  bool is_new(section kind, std::uint64_t address) noexcept {
    if (address == 0) return false;
    std::uint64_t& place = known_[(address >> 2 ^ address >> 10 ^ static_cast<std::uint64_t>(kind)) % known_.size()];
    const std::uint64_t key = address ^ static_cast<std::uint64_t>(kind) << 60;
    if (place == key) return false;
    place = key;
    return true;
  }

  void text(std::uint64_t address) noexcept {
    if (!is_new(section::text, address)) return;
    // The kernel copies: memory that has gone, since somebody did not keep the contract, is no second crash.
    char copy[longest_text];
    iovec into{.iov_base = copy, .iov_len = sizeof copy};
    iovec from{.iov_base = reinterpret_cast<void*>(address),
               .iov_len = sizeof copy};  // NOLINT: an address in this process
    ssize_t got = ::process_vm_readv(::getpid(), &into, 1, &from, 1, 0);
    if (got < 0) {  // it may lie near the end of what is mapped
      from.iov_len = into.iov_len = 4096 - address % 4096 < sizeof copy ? 4096 - address % 4096 : sizeof copy;
      got = ::process_vm_readv(::getpid(), &into, 1, &from, 1, 0);
    }
    if (got <= 0) return;
    const std::size_t length = ::strnlen(copy, static_cast<std::size_t>(got));
    begin(section::text, sizeof address + length);
    put(&address, sizeof address);
    put(copy, length);
  }

  void function(std::uint64_t address) noexcept {
    if (!names_ || !is_new(section::name, address)) return;
    describe(symbols_.find(reinterpret_cast<const void*>(address)), true,
             [&](std::string_view part) {  // NOLINT: as above
               const std::size_t room = sizeof name_ - name_length_;
               name_length_ += part.copy(name_ + name_length_, room);
             });
    begin(section::name, sizeof address + name_length_);
    put(&address, sizeof address);
    put(name_, std::exchange(name_length_, 0));
  }

  void name_thread(std::uint32_t number) noexcept {
    if (!is_new(section::thread, number)) return;
    char path[64] = "/proc/self/task/", digits[12], name[32];
    std::size_t at = std::strlen(path), count = 0;
    for (std::uint32_t left = number; count == 0 || left != 0; left /= 10)
      digits[count++] = static_cast<char>('0' + left % 10);
    while (count != 0) path[at++] = digits[--count];
    std::memcpy(path + at, "/comm", 6);
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;  // it has ended
    const ssize_t got = ::read(file, name, sizeof name);
    ::close(file);
    if (got <= 1) return;
    const std::uint32_t head[2]{number, 0};
    begin(section::thread, sizeof head + static_cast<std::size_t>(got) - 1);
    put(head, sizeof head);
    put(name, static_cast<std::size_t>(got) - 1);  // without the end of its line
  }

  void maps() noexcept {
    const int file = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    for (;;) {
      const ssize_t got = ::read(file, events_.data(), sizeof events_);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      begin(section::maps, static_cast<std::size_t>(got));
      put(events_.data(), static_cast<std::size_t>(got));
    }
    ::close(file);
  }

  void begin(section kind, std::size_t size) noexcept {
    const section_header head{.kind = static_cast<std::uint32_t>(kind), .size = size};
    put(&head, sizeof head);
  }

  void put(const void* what, std::size_t size) noexcept {
    const auto* at = static_cast<const char*>(what);
    while (size != 0) {
      const std::size_t part = std::min(size, sizeof out_ - used_);
      std::memcpy(out_ + used_, at, part);
      used_ += part;
      at += part;
      size -= part;
      if (used_ == sizeof out_) flush();
    }
  }

  void flush() noexcept {
    for (std::size_t done = 0; done != used_ && failed_ == 0;) {
      const ssize_t written = ::write(file_, out_ + done, used_ - done);
      if (written >= 0)
        done += static_cast<std::size_t>(written);
      else if (errno != EINTR)
        failed_ = errno;
    }
    used_ = 0;
  }

  int file_ = -1;
  int failed_ = 0;
  bool names_ = false;
  std::size_t used_ = 0, name_length_ = 0;
  std::array<std::uint64_t, 4096> known_{};
  std::array<recorded_event, 128> events_{};
  char out_[16384]{};
  char name_[2048]{};
  symbolizer symbols_;  // reads files of programs: used on demand alone
};

// ---- crashes ------------------------------------------------------------------------------------------------------------

constexpr std::array crashes{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

constinit kept_path crash_path, deadlock_path;
constinit struct sigaction handled_before[crashes.size()]{};
constinit bool has_handlers = false;
// The thread that writes the file of a crash: 0 nobody yet, -1 it is written.
//   edge crash  the file that was written  ->  another thread that crashes, too. No model: a handler of signals.
constinit std::atomic<int> who_writes{0};
// Made before there is a crash, whose handler may not allocate.
constinit recording_writer* writer_of_crash = nullptr;

// Another thread that crashes meanwhile waits, for if it went on, it would end the process. Not for ever: the writer may be
// stuck. One that crashes in this handler itself goes on at once.
void save_once(int number, const siginfo_t* what) noexcept {
  const int me = ::gettid();
  int writer = 0;
  if (who_writes.compare_exchange_strong(writer, me, std::memory_order_acquire,  // <- crash (no model: as declared)
                                         std::memory_order_relaxed)) {           // the loop below looks again
    if (const char* const path = crash_path.get())
      writer_of_crash->write(path,
                             {.why = recording::reason::crash,
                              .signal = number,
                              .address = what != nullptr && number != SIGABRT ? what->si_addr : nullptr},
                             false);
    return who_writes.store(-1, std::memory_order_release);  // -> crash (no model: as declared)
  }
  for (int i = 0; i != 500 && writer != -1 && writer != me; ++i) {
    const timespec a_while{.tv_sec = 0, .tv_nsec = 10'000'000};
    ::nanosleep(&a_while, nullptr);
    writer = who_writes.load(std::memory_order_acquire);  // <- crash (no model: as declared)
  }
}

void crashed(int number, siginfo_t* what, void* context) noexcept {
  const int kept = errno;
  save_once(number, what);
  errno = kept;
  std::size_t which = 0;
  while (which + 1 != crashes.size() && crashes[which] != number) ++which;
  const struct sigaction& before = handled_before[which];
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr)
    return before.sa_sigaction(number, what, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(number);
  // Nobody else is interested. What a thread has caused itself happens again when this returns; else it is sent once more.
  struct sigaction usual{};
  usual.sa_handler = SIG_DFL;
  ::sigaction(number, &usual, nullptr);
  if (what == nullptr || what->si_code <= 0 || number == SIGABRT) ::raise(number);
}

// Where the library is unloaded, crashed() is gone, so the handlers of before are restored. Those that lie below others of the
// library's are in place once these have gone.
void forget_crashes() noexcept {
  if (!has_handlers) return;
  for (std::size_t i = 0; i != crashes.size(); ++i) {
    struct sigaction now{};
    if (::sigaction(crashes[i], nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == crashed)
      ::sigaction(crashes[i], &handled_before[i], nullptr);
  }
}
[[gnu::destructor]] void forget_crashes_above() noexcept {
  if (has_handlers) note_that_something_stays();
  forget_crashes();
}
[[gnu::destructor(unloads_handlers_of_crashes)]] void forget_crashes_below() noexcept {
  forget_crashes();
  if (is_unloaded()) delete std::exchange(writer_of_crash, nullptr);
}

void save(const char* path, recording::reason why) {
  const auto writer = std::make_unique<recording_writer>();
  if (const int refused = writer->write(path, {.why = why}, true); refused != 0)
    throw error{{refused, std::generic_category()}, "save a recording", path};
}

}  // namespace

bool save_recording_of_deadlock() noexcept {
  const char* const path = deadlock_path.get();
  if (path == nullptr) return false;
  try {
    save(path, recording::reason::deadlock);
    return true;
  } catch (...) {  // the deadlock itself is what counts, and is reported otherwise
    return false;
  }
}

}  // namespace detail

void save_recording(const char* path) { detail::save(path, recording::reason::asked_for); }

void save_recording_on_crash(const char* path) {
  using namespace detail;
  crash_path.set(path);
  if (path == nullptr || has_handlers) return;
  if (writer_of_crash == nullptr) writer_of_crash = new recording_writer;  // for the rest of the process
  prepare_last_words();  // before: it takes a handler of SIGABRT that it finds for the program's own, and prints no stack
  struct sigaction ours{};
  ours.sa_sigaction = crashed;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  for (std::size_t i = 0; i != crashes.size(); ++i) {
    ::sigaction(crashes[i], nullptr, &handled_before[i]);
    ::sigaction(crashes[i], &ours, nullptr);
  }
  has_handlers = true;
}

void save_recording_on_deadlock(const char* path) { detail::deadlock_path.set(path); }

void set_recorder_bytes(std::size_t bytes_per_thread) noexcept { detail::set_ring_bytes(bytes_per_thread); }

}  // namespace weft
