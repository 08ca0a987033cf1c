#include <weft/runtime.hpp>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string_view>
#include <weft/error.hpp>

#include "io/epoll.hpp"
#include "pool/pool_core.hpp"

namespace weft {

struct runtime::parts {
  explicit parts(const runtime_options& options)
      : core{detail::pool_core::make({.threads = options.threads, .name = options.name, .pin = options.pin},
                                     {.of = parker_of, .with = this, .io = &set})},
        pool{*core} {
    guard.begin(*core);
  }
  parts(const parts&) = delete;
  ~parts() {
    pool.shutdown();
    guard.end();
  }

  static detail::parker& parker_of(unsigned, void* its) {
    auto& mine = *static_cast<parts*>(its);
    return mine.parkers.emplace_back(mine.set, mine.guard);
  }

  detail::epoll set;
  detail::epoll_guard guard{set};
  std::deque<detail::epoll_parker> parkers;
  detail::pool_core* const core;
  weft::pool pool;
};

namespace {

bool wants_epoll_by_environment() {
  const char* const wanted = std::getenv("WEFT_IO");
  if (wanted == nullptr || *wanted == '\0') return false;
  if (std::string_view{wanted} == "epoll") return true;
  throw error{std::make_error_code(std::errc::not_supported), "start a runtime with WEFT_IO", wanted};
}

}  // namespace

runtime::runtime(runtime_options options) : parts_{(wants_epoll_by_environment(), std::make_unique<parts>(options))} {}

runtime::~runtime() {
  WEFT_EXPECTS(
      !workers().is_inside(),
      "a runtime was destroyed on one of its own threads, which sleep in what goes with it: destroy it where it "
      "was made");
}

const pool& runtime::workers() const noexcept { return parts_->pool; }
io_backend runtime::backend() const noexcept { return io_backend::epoll; }

io_stats runtime::stats() const noexcept {
  const auto [waits, changes, interrupts] = parts_->set.so_far();
  return {.watched = parts_->set.watched(), .waits = waits, .changes = changes, .interrupts = interrupts};
}

std::string runtime::explain() const {
  return "Sockets are waited for by epoll: it is the one back end that this version of weft has. " +
         std::to_string(workers().size()) +
         " workers share one edge-triggered set; one that has nothing to do sleeps in it, the others on a futex.\n";
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
