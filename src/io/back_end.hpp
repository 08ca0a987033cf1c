// What a runtime waits for sockets by, as the runtime sees it.
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
  /// Where the worker of that number sleeps. Each is asked for once.
  virtual parker& parker_of(unsigned worker) = 0;
  /// Before there is a descriptor.
  virtual void begin(pool_core& workers) noexcept = 0;
  /// When the workers have ended, before they go.
  virtual void end() noexcept = 0;

  virtual io_backend kind() const noexcept = 0;
  virtual io_stats stats() const noexcept = 0;
  /// Who sleeps where, in a sentence.
  virtual std::string explain(unsigned workers) const = 0;
};

/// Throws error.
std::unique_ptr<back_end> make_epoll_back_end();

/// Null: the system refuses it, and `why_not` is a clause that says why.
std::unique_ptr<back_end> make_uring_back_end(unsigned workers, std::string& why_not);

}  // namespace weft::detail
