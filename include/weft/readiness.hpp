// Waits for descriptors that belong to other libraries, such as the socket of a database client.
//
//     while (!connection.is_done()) {
//       co_await w::net::ready(connection.descriptor(), w::net::readiness::readable);
//       connection.go_on();
//     }
#pragma once

#include <utility>
#include <weft/detail/io/descriptor.hpp>
#include <weft/detail/net/operation.hpp>
#include <weft/task.hpp>

namespace weft::detail { class until_others_ready; }  // namespace weft::detail

namespace weft::net {

/// What a descriptor is ready for, or is waited for.
enum class readiness { readable = 1, writable = 2, either = 3 };

/// Waits until a descriptor of another library, which keeps it, is ready. Gives what it is ready for, which may be more than
/// was asked: after an error, or at the end, it is both readable and writable.
///
/// Suspends  where it is not ready.
/// Cancel    has no effect on the descriptor.
/// Fails     with the system's error, also for a regular file, which is always ready.
/// Threads   any; several tasks may wait for one descriptor.
/// Lifetime  the descriptor stays open until the wait has ended.
/// Cost      five system calls.
detail::until_others_ready ready(int number, readiness wanted) noexcept;

// ---- implementation -------------------------------------------------------------------------------------------------------

}  // namespace weft::net

namespace weft::detail {

/// A duplicate of somebody's descriptor, since the same number may be watched already, for somebody else.
class twin {
 public:
  /// Throws error. `merges`: a change in either direction counts as one of the first.
  twin(int of, bool merges);
  twin(twin&& other) noexcept : at_{std::exchange(other.at_, nullptr)} {}
  ~twin() {
    if (at_ != nullptr) at_->drop();
  }
  descriptor* get() const noexcept { return at_; }

 private:
  descriptor* at_;
};

struct getting_ready {
  using value_type = net::readiness;
  static constexpr const char* name = "wait for a descriptor";
  static constexpr const char* if_taken = nullptr;
  getting_ready(int number, net::readiness for_what)
      : wanted{for_what}, watched{number, for_what == net::readiness::either}, at{watched.get()} {}
  direction which() const noexcept { return wanted == net::readiness::writable ? direction::out : direction::in; }
  bool may_try() const noexcept { return at->may_try(which()); }
  tried attempt() const noexcept;
  static net::readiness give(const tried& got) noexcept { return static_cast<net::readiness>(got.size); }

  net::readiness wanted;
  twin watched;
  descriptor* at;
};

/// What ready() returns: the descriptor is looked at, and may be refused, where it is awaited or made a case.
class WEFT_TO_BE_AWAITED("nothing happens until it is awaited") until_others_ready
    : public task_inside<until_others_ready, net::readiness> {
 public:
  using may_be_a_case = void;
  until_others_ready(int number, net::readiness wanted) noexcept : number_{number}, wanted_{wanted} {}

  WEFT_COROUTINE_WRAPPER task<net::readiness> as_task() && { return run(number_, wanted_); }
  operation_case<getting_ready> as_case() && { return operation_case<getting_ready>{getting_ready{number_, wanted_}}; }

 private:
  static task<net::readiness> run(int number, net::readiness wanted) {
    co_await check_stop();
    co_return co_await run_operation(getting_ready{number, wanted});
  }

  int number_;
  net::readiness wanted_;
};

}  // namespace weft::detail

namespace weft::net {

inline detail::until_others_ready ready(int number, readiness wanted) noexcept { return {number, wanted}; }

}  // namespace weft::net
