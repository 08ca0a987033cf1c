#include <weft/runtime.hpp>

#include <signal.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <weft/blocking.hpp>
#include <weft/error.hpp>

#include "io/back_end.hpp"
#include "io/guest_loop.hpp"
#include "pool/pool_core.hpp"

namespace weft {
namespace {

// The back end of a runtime, and a sentence that says why it was chosen.
struct choice {
  std::unique_ptr<detail::back_end> io;
  std::string why;
};

choice choose(const runtime_options& options) {
  const io_backend by_environment = detail::wanted_by_environment();
  const bool asked = options.io != io_backend::automatic;
  const io_backend wanted = asked ? options.io : by_environment;
  const char* const who = asked ? "as its options ask" : "as WEFT_IO asks";
  if (wanted == io_backend::epoll)
    return {detail::make_epoll_back_end(), std::string{"Sockets are waited for by epoll, "} + who + "."};
  // Measured: with connections spread over several rings, workers sleep more often, and find fewer changes after each sleep.
  if (wanted == io_backend::automatic && options.threads != 1)
    return {
        detail::make_epoll_back_end(),
        "Sockets are waited for by epoll, since there are several workers: for them one set takes less processor time "
        "than a ring for each. WEFT_IO=uring, or runtime_options::io, chooses io_uring."};
  std::string why_not;
  if (auto ring = detail::make_uring_back_end(options.threads, why_not))
    return {std::move(ring), wanted == io_backend::uring
                                 ? std::string{"Sockets are waited for by io_uring, "} + who + "."
                                 : "Sockets are waited for by io_uring, which here has all features that weft needs."};
  if (wanted == io_backend::uring)
    throw error{std::make_error_code(std::errc::not_supported), "start a runtime on io_uring", why_not};
  return {detail::make_epoll_back_end(), "Sockets are waited for by epoll, not by io_uring: " + why_not + "."};
}

}  // namespace

io_backend detail::wanted_by_environment() {
  const char* const wanted = std::getenv("WEFT_IO");
  if (wanted == nullptr || *wanted == '\0') return io_backend::automatic;
  if (std::string_view{wanted} == "epoll") return io_backend::epoll;
  if (std::string_view{wanted} == "uring") return io_backend::uring;
  throw error{std::make_error_code(std::errc::not_supported), "start a runtime with WEFT_IO", wanted};
}

#ifndef WEFT_WITH_URING
std::unique_ptr<detail::back_end> detail::make_uring_back_end(unsigned, std::string& why_not) {
  why_not = "this weft was built without liburing";
  return nullptr;
}
#endif

struct runtime::parts {
  // The worker threads, and their back end.
  struct worker_threads {
    // With `options.threads` threads, one of which is the caller's if `with_caller`.
    worker_threads(const runtime_options& options, bool with_caller)
        : worker_threads{options, with_caller, choose(with_spares(options))} {}
    worker_threads(const runtime_options& options, bool with_caller, choice chosen)
        : io{std::move(chosen.io)},
          why{std::move(chosen.why)},
          core{detail::pool_core::make({.threads = options.threads,
                                        .spare_workers = options.spare_workers,
                                        .name = options.name,
                                        .pin = options.pin,
                                        .use_caller = with_caller},
                                       {.of = parker_of, .with = io.get(), .io = &io->service()})},
          pool{*core} {
      io->begin(*core);
    }
    worker_threads(const worker_threads&) = delete;
    ~worker_threads() {
      pool.shutdown();
      io->end();
    }

    // Spare workers wait for sockets, too, so the back end counts them as workers.
    static runtime_options with_spares(runtime_options options) noexcept {
      options.threads += options.spare_workers;
      return options;
    }

    static detail::parker& parker_of(unsigned worker, void* by) {
      return static_cast<detail::back_end*>(by)->parker_of(worker);
    }

    const std::unique_ptr<detail::back_end> io;
    const std::string why;
    detail::pool_core* const core;
    weft::pool pool;
  };

  detail::guest_loop& as_guest() noexcept {
    WEFT_EXPECTS(guest.has_value(),
                 "a runtime that is no guest was used as one: it has threads, which run what is ready");
    return *guest;
  }
  worker_threads& with_workers() noexcept {
    WEFT_EXPECTS(workers.has_value(), "a guest runtime was asked for its workers: it has none");
    return *workers;
  }

  parts(runtime_options options, bool with_caller) {
    if (options.guest) {
      if (options.io == io_backend::uring)
        throw error{std::make_error_code(std::errc::not_supported), "start a guest runtime on io_uring",
                    "it waits by epoll"};
      guest.emplace();
      return;
    }
    if (options.threads == 0) options.threads = available_processors();
    workers.emplace(options, with_caller);
  }

  // Exactly one of the two has a value.
  std::optional<worker_threads> workers;
  std::optional<detail::guest_loop> guest;
};

runtime::runtime(runtime_options options) : parts_{std::make_unique<parts>(options, false)} {}
runtime::runtime(runtime_options options, detail::caller_works) : parts_{std::make_unique<parts>(options, true)} {}

runtime::~runtime() {
  WEFT_EXPECTS(
      is_guest() || !workers().is_inside(),
      "a runtime was destroyed on one of its own threads, which sleep in what goes with it: destroy it where it "
      "was made");
}

bool runtime::is_guest() const noexcept { return parts_->guest.has_value(); }
int runtime::descriptor() const noexcept { return parts_->as_guest().number(); }
std::size_t runtime::run_ready(std::size_t budget) { return parts_->as_guest().run_ready(budget); }
void runtime::run_until(const bool& over) noexcept { parts_->as_guest().run_until(over); }

executor& runtime::executor() const noexcept {
  if (is_guest()) return *parts_->guest;
  return workers().executor();
}
const pool& runtime::workers() const noexcept { return parts_->with_workers().pool; }

io_backend runtime::backend() const noexcept { return is_guest() ? io_backend::epoll : parts_->workers->io->kind(); }
io_stats runtime::stats() const noexcept {
  if (!is_guest()) return parts_->workers->io->stats();
  const auto so_far = parts_->guest->so_far();
  return {.watched = parts_->guest->watched(),
          .waits = so_far.waits,
          .changes = so_far.changes,
          .interrupts = so_far.interrupts};
}

namespace {

std::string blocking_explained() {
  const blocking_stats now = process_blocking_stats();
  if (now.threads == 0) return " No thread is there for calls that block.\n";
  return " Threads for calls that block: " + std::to_string(now.threads) + ". At a call: " + std::to_string(now.busy) +
         ", of them at one that was abandoned: " + std::to_string(now.abandoned) +
         ". Calls that wait for a thread: " + std::to_string(now.waiting) + ".\n";
}

}  // namespace

std::string runtime::explain() const {
#if defined(WEFT_WITH_CARES)
  constexpr const char* names = " Names are looked up by c-ares.";
#else
  constexpr const char* names =
      " Names are looked up by getaddrinfo, which blocks a thread: this weft was built without c-ares.";
#endif
  constexpr const char* files =
      " Files are read and written at once where that need not wait for a disk, else by threads for calls that block.";
  constexpr const char* files_by_ring =
      " Files are read and written at once where that need not wait for a disk, else by its ring, by threads of the "
      "kernel.";
  if (is_guest())
    return std::string{
               "Sockets are waited for by epoll, whose descriptor the host's loop watches; this guest runtime has no "
               "threads."} +
           files + names + blocking_explained();
  return parts_->workers->why + " " + parts_->workers->io->explain(workers().size()) +
         (backend() == io_backend::uring ? files_by_ring : files) + names + blocking_explained();
}

namespace {
sigset_t sigpipe_alone() noexcept {
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, SIGPIPE);
  return one;
}
bool is_sigpipe_pending() noexcept {
  sigset_t pending;
  return ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGPIPE) == 1;
}
}  // namespace

detail::as_worker::as_worker() noexcept : was_pending_{is_sigpipe_pending()} {
  const sigset_t one = sigpipe_alone();
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &one, &before);
  was_blocked_ = ::sigismember(&before, SIGPIPE) == 1;
}

// Takes a SIGPIPE that was raised on this thread meanwhile, so that it is not delivered when SIGPIPE is unblocked.
detail::as_worker::~as_worker() {
  const sigset_t one = sigpipe_alone();
  constexpr timespec at_once{};
  if (!was_pending_ && is_sigpipe_pending()) ::sigtimedwait(&one, nullptr, &at_once);
  if (!was_blocked_) ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

int detail::report_failure() noexcept {
  try {
    throw;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
  } catch (const stopped&) {
    std::fprintf(stderr, "stopped\n");
  } catch (...) {
    std::fprintf(stderr, "an exception of a type that is no std::exception\n");
  }
  return 1;
}

}  // namespace weft
