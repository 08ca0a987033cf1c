#include <weft/runtime.hpp>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <weft/error.hpp>

#include "io/back_end.hpp"
#include "pool/pool_core.hpp"

namespace weft {
namespace {

// What a runtime waits by, and a sentence that says why.
struct choice {
  std::unique_ptr<detail::back_end> io;
  std::string why;
};

io_backend wanted_by_environment() {
  const char* const wanted = std::getenv("WEFT_IO");
  if (wanted == nullptr || *wanted == '\0') return io_backend::automatic;
  if (std::string_view{wanted} == "epoll") return io_backend::epoll;
  if (std::string_view{wanted} == "uring") return io_backend::uring;
  throw error{std::make_error_code(std::errc::not_supported), "start a runtime with WEFT_IO", wanted};
}

choice choose(const runtime_options& options) {
  const io_backend by_environment = wanted_by_environment();
  const bool asked = options.io != io_backend::automatic;
  const io_backend wanted = asked ? options.io : by_environment;
  const char* const who = asked ? "as its options ask" : "as WEFT_IO asks";
  if (wanted == io_backend::epoll)
    return {detail::make_epoll_back_end(), std::string{"Sockets are waited for by epoll, "} + who + "."};
  std::string why_not;
  if (auto ring = detail::make_uring_back_end(options.threads, why_not))
    return {std::move(ring), wanted == io_backend::uring
                                 ? std::string{"Sockets are waited for by io_uring, "} + who + "."
                                 : "Sockets are waited for by io_uring, which has all here that weft needs of it."};
  if (wanted == io_backend::uring)
    throw error{std::make_error_code(std::errc::not_supported), "start a runtime on io_uring", why_not};
  return {detail::make_epoll_back_end(), "Sockets are waited for by epoll, not by io_uring: " + why_not + "."};
}

}  // namespace

#ifndef WEFT_WITH_URING
std::unique_ptr<detail::back_end> detail::make_uring_back_end(unsigned, std::string& why_not) {
  why_not = "this weft was built without liburing";
  return nullptr;
}
#endif

struct runtime::parts {
  explicit parts(const runtime_options& options) : parts{options, choose(options)} {}  // of so many threads
  parts(const runtime_options& options, choice chosen)
      : io{std::move(chosen.io)},
        why{std::move(chosen.why)},
        core{detail::pool_core::make({.threads = options.threads, .name = options.name, .pin = options.pin},
                                     {.of = parker_of, .with = io.get(), .io = &io->service()})},
        pool{*core} {
    io->begin(*core);
  }
  parts(const parts&) = delete;
  ~parts() {
    pool.shutdown();
    io->end();
  }

  static detail::parker& parker_of(unsigned worker, void* by) {
    return static_cast<detail::back_end*>(by)->parker_of(worker);
  }

  const std::unique_ptr<detail::back_end> io;
  const std::string why;
  detail::pool_core* const core;
  weft::pool pool;
};

runtime::runtime(runtime_options options) {
  if (options.threads == 0) options.threads = available_processors();
  parts_ = std::make_unique<parts>(options);
}

runtime::~runtime() {
  WEFT_EXPECTS(
      !workers().is_inside(),
      "a runtime was destroyed on one of its own threads, which sleep in what goes with it: destroy it where it "
      "was made");
}

const pool& runtime::workers() const noexcept { return parts_->pool; }
io_backend runtime::backend() const noexcept { return parts_->io->kind(); }
io_stats runtime::stats() const noexcept { return parts_->io->stats(); }
std::string runtime::explain() const { return parts_->why + " " + parts_->io->explain(workers().size()) + "\n"; }

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
