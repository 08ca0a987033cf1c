// A process that runs, and did not prepare for being looked at. All of its threads are stopped by ptrace for as long as it
// takes to copy memory, not for as long as it takes to make sense of it: what is to be copied is known by then, and where it
// goes is there. Whoever reads the copy later finds the moment at which all threads stood.
//
// Copied is what can be written: the slabs that frames and records lie in, which are found by the library's own list; then
// data segments, heaps and stacks, the smallest first, as long as that is not too much. What was left out
// is read when it is needed, after the process has gone on; that is counted, since it may have changed. Where a conclusion
// hangs on it, a second look copies those pages, too.
//
// Rejected: (a) fork() inside of the process, for a copy on write: it would have to run code there. (b) Walking while it
// stands: 200,000 tasks are some hundred nanoseconds each, and a walk is full of misses.
#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fields.hpp"
#include "proc.hpp"
#include "target.hpp"

namespace weft_tool {
namespace {

const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));  // of AArch64, 4, 16 or 64 KiB
constexpr std::size_t most_besides = std::size_t{96} << 20;           // of what lies outside of slabs
constexpr std::size_t most_late_pages = 1 << 14;                      // and of those that were missing in a first copy

// While this lives, no key stops this program, with which a process that it holds would stand.
class not_stopped {
 public:
  not_stopped() noexcept {
    sigset_t keys;
    ::sigemptyset(&keys);
    for (const int one : {SIGTSTP, SIGTTIN, SIGTTOU}) ::sigaddset(&keys, one);
    ::pthread_sigmask(SIG_BLOCK, &keys, &before_);
  }
  not_stopped(const not_stopped&) = delete;
  ~not_stopped() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

struct piece {
  address begin;
  std::size_t bytes;
  std::byte* copy = nullptr;
};

// Room for copies, which has its memory before anything is copied to it.
class room {
 public:
  room() = default;
  room(const room&) = delete;
  ~room() {
    if (begin_ != nullptr) ::munmap(begin_, bytes_);
  }
  void make(std::size_t bytes) {
    bytes_ = (bytes + (2u << 20)) & ~std::size_t{(2u << 20) - 1};
    void* const at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw problem{"there is no memory for a copy of " + std::to_string(bytes_ >> 20) + " MiB"};
    begin_ = static_cast<std::byte*>(at);
    ::madvise(begin_, bytes_, MADV_HUGEPAGE);
    for (std::size_t at_byte = 0; at_byte < bytes_; at_byte += page) begin_[at_byte] = std::byte{1};
  }
  std::byte* take(std::size_t bytes) noexcept {
    if (bytes > bytes_ - used_) return nullptr;
    return begin_ + std::exchange(used_, used_ + bytes);
  }

 private:
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0, used_ = 0;
};

class process final : public target, weft_tool::memory {
 public:
  process(int which, const std::vector<address>& also) : through_{living_thread_of(which)}, live_{through_} {
    pid = which;
    mappings_ = mappings_of(through_);
    refuse_unless_readable(pid, live_, mappings_);
    find_modules(live_);
    plan(also);
    stop_and_copy();
    std::ranges::sort(pieces_, {}, &piece::begin);
  }

  const weft_tool::memory& memory() const noexcept override { return *this; }
  std::string what() const override { return "process " + std::to_string(pid); }
  std::size_t late_reads() const noexcept override { return late_; }
  std::vector<address> late_pages() const override { return {late_pages_.begin(), late_pages_.end()}; }

 private:
  // From the copy; what is not in it, from the process.
  std::size_t read(address at, void* into, std::size_t bytes) const noexcept override {
    std::size_t done = 0;
    while (done != bytes) {
      const auto after = std::ranges::upper_bound(pieces_, at + done, {}, &piece::begin);
      std::size_t now = bytes - done;
      if (after != pieces_.begin() && at + done - after[-1].begin < after[-1].bytes) {
        const piece& in = after[-1];
        const std::size_t offset = at + done - in.begin;
        now = std::min(now, in.bytes - offset);
        std::memcpy(static_cast<std::byte*>(into) + done, in.copy + offset, now);
      } else {
        if (after != pieces_.end()) now = std::min<std::uint64_t>(now, after->begin - (at + done));
        const std::size_t got = live_.read(at + done, static_cast<std::byte*>(into) + done, now);
        if (got != 0 && may_change(at + done)) note_late(at + done, got);
        if (got != now) return done + got;
      }
      done += now;
    }
    return done;
  }

  void note_late(address at, std::size_t bytes) const noexcept {
    ++late_;
    try {
      for (address one = at & ~address{page - 1}; one < at + bytes && late_pages_.size() != most_late_pages;
           one += page)
        late_pages_.insert(one);
    } catch (const std::bad_alloc&) {  // fewer are copied at the next look
    }
  }

  bool may_change(address at) const noexcept {
    const auto after = std::ranges::upper_bound(mappings_, at, {}, &mapping::begin);
    return after == mappings_.begin() || at >= after[-1].end || after[-1].can_write;
  }

  // All slabs, as they are now; of a process that runs, some may be missing or gone.
  std::vector<address> slabs() const {
    std::vector<address> found;
    for (const fields& one : tables_)
      for (address worker : one.workers(live_))
        for (address slab = live_.word(worker + one["worker.slabs"]); slab != 0 && found.size() != 1 << 20;
             slab = live_.word(slab + one["slab.next"]))
          found.push_back(slab);
    std::ranges::sort(found);
    const auto repeated = std::ranges::unique(found);
    found.erase(repeated.begin(), repeated.end());
    return found;
  }

  // The parts of a mapping that have memory, and are no slabs.
  void add_present(const mapping& of, const std::vector<address>& slabs, std::vector<piece>& into) const {
    const int file = ::open(file_of(through_, "pagemap").c_str(), O_RDONLY | O_CLOEXEC);
    std::vector<std::uint64_t> pages((of.end - of.begin) / page);
    const auto bytes = static_cast<ssize_t>(pages.size() * sizeof pages[0]);
    const bool is_known = file >= 0 && ::pread(file, pages.data(), static_cast<std::size_t>(bytes),
                                               static_cast<off_t>(of.begin / page * sizeof pages[0])) == bytes;
    if (file >= 0) ::close(file);
    if (!is_known) return into.push_back({of.begin, of.end - of.begin});
    constexpr std::uint64_t present = std::uint64_t{1} << 63, swapped = std::uint64_t{1} << 62,
                            guard = std::uint64_t{1} << 58;
    bool goes_on = false;
    for (std::size_t i = 0; i != pages.size(); ++i) {
      const address begin = of.begin + i * page;
      if (std::ranges::binary_search(slabs, begin & ~(slab_bytes_ - 1))) {
        goes_on = false;
        continue;
      }
      if ((pages[i] & present) != 0 && goes_on)
        into.back().bytes += page;
      else if ((pages[i] & (present | swapped)) != 0 && (pages[i] & guard) == 0)
        into.push_back({begin, page});
      goes_on = (pages[i] & present) != 0;  // older kernels show guards as swapped, and a read ends there
    }
  }

  // Of these pages, those that are not copied anyway. Gives how many bytes they have.
  std::size_t add_pages(const std::vector<address>& also, const std::vector<address>& slabs) {
    std::vector<piece> known = pieces_;
    std::ranges::sort(known, {}, &piece::begin);
    std::size_t bytes = 0;
    for (const address one : also) {
      const auto after = std::ranges::upper_bound(known, one, {}, &piece::begin);
      const bool is_known = after != known.begin() && one - after[-1].begin < after[-1].bytes;
      if (is_known || std::ranges::binary_search(slabs, one & ~(slab_bytes_ - 1))) continue;
      pieces_.push_back({one, page});
      bytes += page;
    }
    return bytes;
  }

  // What is to be copied besides slabs, and room for all.
  void plan(const std::vector<address>& also) {
    for (const module& one : modules_)
      if (fields found{one, live_}; found.is_found()) tables_.push_back(std::move(found));
    const std::vector<address> known = slabs();
    slab_bytes_ = tables_.empty() ? page : tables_[0]["slab.bytes"];
    constexpr std::size_t largest_slab = 4 << 20;  // so that a number that is none can't ask for all memory
    if (slab_bytes_ < page || slab_bytes_ > largest_slab || (slab_bytes_ & (slab_bytes_ - 1)) != 0)
      throw problem{what() + ": its notes of weft are damaged: slabs"};
    std::vector<const mapping*> others;
    for (const mapping& one : mappings_) {
      if (!one.can_read || !one.can_write || !one.is_private) continue;
      others.push_back(&one);
    }
    std::ranges::sort(others, [](const mapping* a, const mapping* b) { return a->end - a->begin < b->end - b->begin; });
    std::size_t besides = 0;
    for (const mapping* one : others) {
      if (one->end - one->begin > std::size_t{1} << 40) continue;
      std::vector<piece> parts;
      add_present(*one, known, parts);
      std::size_t bytes = 0;
      for (const piece& part : parts) bytes += part.bytes;
      if (besides + bytes > most_besides) continue;
      besides += bytes;
      pieces_.insert(pieces_.end(), parts.begin(), parts.end());
    }
    besides += add_pages(also, known);
    // Of slabs that are made meanwhile, some.
    room_.make(besides + (known.size() + known.size() / 8 + 64) * slab_bytes_);
    for (piece& one : pieces_) one.copy = room_.take(one.bytes);
  }

  // ---- while it stands

  // Whether a debugger has it, and it stands already.
  bool is_held() const {
    if (const std::string by = status_of(file_of(through_, "status"), "TracerPid:"); by.empty() || by == "0")
      return false;
    return std::ranges::all_of(threads_of(pid),
                               [&](int one) { return state_of(pid, one) == 't' || has_ended(pid, one); });
  }

  using clock = std::chrono::steady_clock;

  // Whether a thread that was interrupted stands at last. One in a system call that nothing interrupts, as vfork() and a file
  // of a server that is gone, does not, and all others would stand as long as it is there.
  bool comes_to_stand(int thread, int& status, clock::time_point until) const {
    for (int tries = 0;; ++tries) {
      const pid_t seen = ::waitpid(thread, &status, __WALL | WNOHANG);
      if (seen == thread) return WIFSTOPPED(status);
      if (seen < 0 && errno != EINTR) return false;
      if (clock::now() >= until)
        throw problem{what() + ": its thread " + std::to_string(thread) +
                      " does not stop: it is in a system call that nothing interrupts"};
      constexpr int tries_in_a_row = 100;
      constexpr timespec pause{.tv_sec = 0, .tv_nsec = 50'000};
      if (tries < tries_in_a_row)
        ::sched_yield();
      else
        ::nanosleep(&pause, nullptr);
    }
  }

  void stop_and_copy() {
    if (is_held()) return copy();
    const not_stopped meanwhile;
    // Meanwhile before all others, where that is permitted: on a busy machine the process would stand while this waits for a
    // processor.
    const int nice_before = ::getpriority(PRIO_PROCESS, 0);
    ::setpriority(PRIO_PROCESS, 0, -20);
    const auto processor_now = [] {
      timespec now{};
      ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
      return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
    };
    const double processor_before = processor_now();
    struct stopped {
      int thread;
      long signal;  // that was on its way, and is handed on
    };
    std::vector<stopped> standing;
    const auto let_go = [&] {
      for (const auto& [thread, signal] : standing)
        ::ptrace(PTRACE_DETACH, thread, nullptr, reinterpret_cast<void*>(signal));
    };
    constexpr std::chrono::seconds longest_wait{5};
    clock::time_point begin;
    try {
      // A thread may start another one before it stands, so this ends when a look finds none that runs.
      for (bool again = true; again;) {
        again = false;
        std::vector<int> fresh;
        for (const int one : threads_of(pid)) {
          if (std::ranges::find(standing, one, &stopped::thread) != standing.end()) continue;
          if (::ptrace(PTRACE_SEIZE, one, nullptr, nullptr) != 0) {
            const int error = errno;
            if (error == ESRCH || has_ended(pid, one)) continue;  // EPERM, of one that has ended and is still listed
            refuse(pid, error, "trace it");  // those that were seized run, and the kernel lets go of them as this ends
          }
          fresh.push_back(one);
        }
        if (standing.empty()) begin = clock::now();
        for (const int one : fresh) ::ptrace(PTRACE_INTERRUPT, one, nullptr, nullptr);
        for (const int one : fresh) {
          int status = 0;
          if (!comes_to_stand(one, status, begin + longest_wait)) continue;  // it has ended
          const bool by_signal = status >> 16 == 0;
          standing.push_back({one, by_signal ? WSTOPSIG(status) : 0L});
          again = true;
        }
      }
      copy();
      for (const stopped& one : standing) note_registers(one.thread);
    } catch (...) {
      let_go();
      throw;
    }
    let_go();
    processor_ms = processor_now() - processor_before;
    ::setpriority(PRIO_PROCESS, 0, nice_before);
    stood_ms = std::chrono::duration<double, std::milli>(clock::now() - begin).count();
    for (thread_seen& one : threads_) {
      std::ifstream name{file_of(pid, ("task/" + std::to_string(one.id) + "/comm").c_str())};
      std::getline(name, one.name);
      one.id = number_inside(pid, one.id);
    }
    if (threads_.empty()) throw problem{"process " + std::to_string(pid) + " has just ended"};
  }

  void copy() {
    for (const address one : slabs()) {
      if (!pieces_.empty() && !first_slab_ && pieces_.back().begin + pieces_.back().bytes == one &&
          pieces_.back().bytes < std::size_t{4} << 20) {
        if (room_.take(slab_bytes_) != nullptr) pieces_.back().bytes += slab_bytes_;
        continue;
      }
      first_slab_ = false;
      if (std::byte* const to = room_.take(slab_bytes_); to != nullptr) pieces_.push_back({one, slab_bytes_, to});
    }
    // Several threads, each the next piece that nobody has taken.
    std::atomic<std::size_t> next{0}, copied{0};
    const auto some = [&] {
      for (std::size_t i; (i = next.fetch_add(1)) < pieces_.size();) {
        piece& one = pieces_[i];
        one.bytes = live_.read(one.begin, one.copy, one.bytes);
        copied += one.bytes;
      }
    };
    {
      const unsigned helpers = std::min(std::max(std::thread::hardware_concurrency(), 1u) - 1, 3u);
      std::vector<std::jthread> help;
      try {
        for (unsigned i = 0; i != helpers; ++i) help.emplace_back(some);
      } catch (const std::system_error&) {  // no more threads here: fewer do
      }
      some();
    }
    copied_bytes = copied;
  }

  void note_registers(int thread) {
    std::uint64_t raw[40]{};
    iovec into{raw, sizeof raw};
    thread_seen one;
    one.id = thread;
    if (::ptrace(PTRACE_GETREGSET, thread, reinterpret_cast<void*>(NT_PRSTATUS), &into) == 0)
      one.regs = registers_of({reinterpret_cast<const std::byte*>(raw), into.iov_len});
    threads_.push_back(std::move(one));
  }

  int through_;
  live_memory live_;
  std::vector<fields> tables_;
  std::vector<piece> pieces_;
  std::size_t slab_bytes_ = page;
  bool first_slab_ = true;
  room room_;
  mutable std::size_t late_ = 0;
  mutable std::unordered_set<address> late_pages_;
};

}  // namespace

std::unique_ptr<target> open_process(int pid, const std::vector<address>& also) {
  refuse_this(pid);
  return std::make_unique<process>(pid, also);
}

}  // namespace weft_tool
