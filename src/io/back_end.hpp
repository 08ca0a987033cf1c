// The I/O back end of a runtime: epoll or io_uring, behind one interface.
#pragma once

#include <memory>
#include <string>

#include <weft/io_backend.hpp>

namespace weft::detail {

class io_service;
class parker;
class pool_core;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

class back_end {
 public:
  back_end() = default;
  back_end(const back_end&) = delete;
  virtual ~back_end() = default;

  virtual io_service& service() noexcept = 0;
  /// The parker of worker number `worker`. Called once for each worker.
  virtual parker& parker_of(unsigned worker) = 0;
  /// Called before any descriptor is made.
  virtual void begin(pool_core& workers) noexcept = 0;
  /// Called when the workers' threads have ended, before the pool is destroyed.
  virtual void end() noexcept = 0;

  // For use without a pool, as in the test kit: one thread calls look(), and then report().

  /// Called by that thread instead of begin().
  virtual void begin_here() = 0;
  /// Whether the system has something to report. Does not wait.
  virtual bool look() noexcept = 0;
  /// Reports what look() has found: wakes the tasks that wait for it.
  virtual void report() noexcept = 0;
  /// Whether there are calls on files whose results were not reported yet.
  virtual bool has_calls() const noexcept { return false; }

  virtual io_backend kind() const noexcept = 0;
  virtual io_stats stats() const noexcept = 0;
  /// Says in a sentence where idle workers sleep.
  virtual std::string explain(unsigned workers) const = 0;
};

/// The back end that the environment variable WEFT_IO asks for. Throws error if there is no such back end.
io_backend wanted_by_environment();

/// Throws error.
std::unique_ptr<back_end> make_epoll_back_end();

/// Null: the system refuses io_uring, and `why_not` is a clause that says why.
std::unique_ptr<back_end> make_uring_back_end(unsigned workers, std::string& why_not);

}  // namespace weft::detail
