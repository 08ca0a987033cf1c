#include <unistd.h>
#include <weft/detail/core/async_stack.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <iterator>
#include <string_view>
#include <typeinfo>
#include <weft/detail/base/lock.hpp>
#include <weft/error.hpp>

#include "base/cxxabi.hpp"
#include "base/last_words.hpp"
#include "base/unloading.hpp"
#include "core/worker.hpp"
#include "trace/symbols.hpp"

namespace weft::detail {

const void* stack_walk::next() noexcept {
  for (;;) {
    if (calls_ != nullptr && shown_ != calls_->count) return calls_->code[shown_++];
    while (!at_ || root::ended_by(at_) != nullptr) {
      if (at_) {
        root_ = root::ended_by(at_);
        at_ = root_->after_end();
      }
      if (at_) {
        root_ = nullptr;
        continue;
      }
      if (root_->parent == nullptr) return nullptr;
      root_ = root_->is_fork ? root_->parent->parent : root_->parent;  // the body of a scope may be running
      at_ = root_->innermost();
    }
    const frame& here = *static_cast<const frame*>(at_.address());
    frame_ = reinterpret_cast<std::uintptr_t>(&here);
    const std::atomic_ref goes_on{promise_base::of(at_).continuation};
    at_ = goes_on.load(std::memory_order_acquire);  // <- lent (no model: a frame is not watched)
    if (here.destroy == boundary::arrive_stopped) {
      if (calls_ != nullptr) {
        shown_ = 0;
        list_calls(here, *calls_);
      }
      continue;
    }
    const auto function = here.resume != nullptr ? here.resume : here.destroy;  // g++ forgets the first one at a throw
    return reinterpret_cast<const void*>(function);
  }
}

namespace {

// ---- printing ---------------------------------------------------------------------------------------------------------

// Text to stderr by write(2): usable in a signal handler.
class text_to_stderr {
 public:
  text_to_stderr() = default;
  text_to_stderr(const text_to_stderr&) = delete;
  ~text_to_stderr() { flush(); }

  text_to_stderr& operator<<(std::string_view text) noexcept {
    while (!text.empty()) {
      if (size_ == sizeof buffer_) flush();
      const std::size_t part = text.copy(buffer_ + size_, sizeof buffer_ - size_);
      size_ += part;
      text.remove_prefix(part);
    }
    return *this;
  }
  text_to_stderr& operator<<(std::size_t number) noexcept {
    char digits[20];
    const char* end = std::to_chars(digits, std::end(digits), number).ptr;
    return *this << std::string_view{digits, end};
  }

 private:
  void flush() noexcept {
    for (std::size_t done = 0; done < size_;) {
      const ssize_t written = ::write(STDERR_FILENO, buffer_ + done, size_ - done);
      if (written <= 0) break;  // nobody reads stderr, so nothing more can be said
      done += static_cast<std::size_t>(written);
    }
    size_ = 0;
  }

  char buffer_[512];
  std::size_t size_ = 0;
};

enum class names {
  demangled,
  mangled,  // allocates nothing: abort() may have been called by malloc itself, under its lock
};

// Of a deeper stack the two ends are printed.
constexpr std::size_t innermost_shown = 40;
constexpr std::size_t outermost_shown = 8;

constinit std::atomic<bool> printed{false};  // only the first failure prints, and abort() follows

// `next` gives one resume function at each call, and null after the last.
template <class Next>
void print_stack(std::string_view title, names how, Next next) noexcept {
  if (printed.exchange(true, std::memory_order_relaxed)) return;  // guards nothing but this output
  symbolizer symbols;
  text_to_stderr out;
  out << "weft: " << title << ", innermost first\n";
  const auto line = [&](std::size_t depth, const void* code) {
    out << "  #" << depth << (depth < 10 ? "  " : " ");
    describe(symbols.find(code), how == names::demangled, [&](std::string_view text) { out << text; });
    out << "\n";
  };

  const void* outermost[outermost_shown]{};
  std::size_t depth = 0;
  for (const void* code = next(); code != nullptr; code = next(), ++depth)
    if (depth < innermost_shown)
      line(depth, code);
    else
      outermost[depth % outermost_shown] = code;
  if (depth <= innermost_shown) return;
  const std::size_t resumed_at = std::max(innermost_shown, depth - std::min(depth, outermost_shown));
  if (resumed_at > innermost_shown) out << "  ... " << resumed_at - innermost_shown << " more\n";
  for (std::size_t at = resumed_at; at != depth; ++at) line(at, outermost[at % outermost_shown]);
}

// May be called in a signal handler, so it makes no worker.
const root* running_root() noexcept { return worker_of_thread != nullptr ? worker_of_thread->current : nullptr; }

void print_running(names how) noexcept {
  if (const root* self = running_root()) {
    call_list calls{.after = __builtin_return_address(0), .ask = false};
    const bool in_signal_handler = how == names::mangled;
    print_stack(
        "async stack of the running task", how,
        [walk = in_signal_handler ? stack_walk{*self} : stack_walk{*self, calls}]() mutable { return walk.next(); });
  }
}

// ---- exceptions -------------------------------------------------------------------------------------------------------

// Remembers where exceptions that left a task were thrown, by the address of the exception. Where two exceptions share an
// entry, or two threads write it at once, one of them is kept: this is only for the report before abort(), which must not
// wait.
struct throw_site {
  tiny_lock busy;  // of what follows
  const void* exception = nullptr;
  const void* code[24]{};  // the innermost
};
constinit throw_site throw_sites[64];

template <class F>
void with_site_of(const void* exception, F use) noexcept {
  throw_site& site = throw_sites[reinterpret_cast<std::uintptr_t>(exception) / 16 % std::size(throw_sites)];
  if (!site.busy.try_lock()) return;
  use(site);
  site.busy.unlock();
}

const void* object_of(const std::exception_ptr& exception) noexcept {
  static_assert(sizeof exception == sizeof(void*), "in every library an exception_ptr is a pointer to the object");
  const void* object;
  std::memcpy(&object, static_cast<const void*>(&exception), sizeof object);
  return object;
}

// Whether the exception that is being handled comes from a throw, and not out of an exception_ptr. The C++ ABI has a
// list of them, by their headers; that of a thrown one lies right before the object, any other one elsewhere.
bool comes_from_throw(const void* object) noexcept {
  constexpr std::ptrdiff_t largest_header = 128;
  const char* header;
  std::memcpy(&header, abi::__cxa_get_globals(), sizeof header);
  const std::ptrdiff_t distance = static_cast<const char*>(object) - header;
  return 0 < distance && distance <= largest_header;
}

// Only an exception that comes out of an exception_ptr was passed on by tasks. One that was just thrown may lie at the
// address of an earlier one that was noted and is gone.
void print_where_thrown() noexcept {
  const std::exception_ptr exception = std::current_exception();
  const void* object = object_of(exception);
  if (object == nullptr || comes_from_throw(object)) return;
  with_site_of(object, [object](const throw_site& site) {
    if (site.exception == object)
      print_stack(
          "async stack of the task that threw", names::demangled,
          [at = std::begin(site.code), end = std::end(site.code)]() mutable { return at != end ? *at++ : nullptr; });
  });
}

// ---- last words -------------------------------------------------------------------------------------------------------

constinit std::terminate_handler previous_terminate = nullptr;

[[noreturn]] void on_terminate() {
  if (running_root() != nullptr)
    print_running(names::demangled);
  else
    print_where_thrown();
  previous_terminate();
  std::abort();
}

// When it returns, abort() goes on as if there had been no handler.
void on_abort(int, siginfo_t* from, void*) {
  const int kept = errno;
  if (from->si_pid == ::getpid()) print_running(names::mangled);  // not if another process sent the signal
  errno = kept;
}

}  // namespace

std::exception_ptr exception_leaving(promise_base& promise) noexcept {
  std::exception_ptr exception = caught();
  if (comes_from_throw(object_of(exception))) note_failure(promise, exception);
  return exception;
}

void note_failure(promise_base& promise, const std::exception_ptr& exception) noexcept {
  with_site_of(object_of(exception), [&](throw_site& site) {
    site.exception = object_of(exception);
    stack_walk walk{*promise.owner, std::coroutine_handle<promise_base>::from_promise(promise)};
    std::ranges::generate(site.code, [&] { return walk.next(); });
  });
}

const void* thrown_in(const std::exception_ptr& exception) noexcept {
  const void* code = nullptr;
  with_site_of(object_of(exception), [&](const throw_site& site) {
    if (site.exception == object_of(exception)) code = site.code[0];
  });
  return code;
}

namespace {

// Where the library is unloaded, the handlers go with it.
[[gnu::destructor(unloads_handlers)]] void forget_last_words() noexcept {
  if (std::get_terminate() == on_terminate) std::set_terminate(previous_terminate);
  struct sigaction now{};
  if (::sigaction(SIGABRT, nullptr, &now) != 0 || now.sa_sigaction != on_abort) return;
  now = {};
  ::sigaction(SIGABRT, &now, nullptr);
}

}  // namespace

void prepare_last_words() noexcept {
  static const bool once = [] {
    print_running_stack.store([]() noexcept { print_running(names::demangled); }, std::memory_order_relaxed);
    previous_terminate = std::set_terminate(on_terminate);
    struct sigaction action{};
    if (::sigaction(SIGABRT, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) {  // else it is the program's own
      action.sa_sigaction = on_abort;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      ::sigaction(SIGABRT, &action, nullptr);
    }
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace weft::detail
