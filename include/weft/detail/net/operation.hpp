// Operations on sockets: what a read, a write or an accept does where it is awaited, and as a case of a select. Part of
// net.hpp.
//
// An operation is tried at once; if it would block, it waits until the socket is ready and is tried again. It fails by
// fail_with, so that as_result gets the error without a throw.
//
// As a case of a select it waits in the line of the descriptor's event. The select itself tries it, after it has chosen the case
// and released all locks. The try may find nothing, if another task accepts from the same listener. Then the case was chosen in
// vain, and the select waits again, for all of its cases. So an operation that was not chosen was not tried either, and has had
// no effect.
//
// Rejected: the thread that reports the readiness tries the operation before it claims the select's wait. It would call the
// system under a lock, while it has other descriptors' readiness to report; and if it then failed to claim the wait, it would
// hold data that no task receives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <weft/detail/channel/select_wait.hpp>
#include <weft/detail/io/descriptor.hpp>
#include <weft/detail/task/task_awaiter.hpp>
#include <weft/error.hpp>
#include <weft/hop.hpp>
#include <weft/nothrow.hpp>
#include <weft/select_on.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

namespace weft::net { union ip_address; }  // namespace weft::net

namespace weft::detail {

/// The outcome of a try: a number of bytes or a descriptor's number; or that the operation must wait; or an error.
struct tried {
  std::size_t size = 0;
  bool must_wait = false;
  std::error_code refused{};
};
tried try_receive(descriptor& from, std::span<std::byte> into) noexcept;
/// Into several parts, of which the first is not empty: into 64 of them at most.
tried try_receive(descriptor& from, std::span<const std::span<std::byte>> into) noexcept;
/// From several parts, of which the first is not empty: from 64 of them at most.
tried try_send(descriptor& to, std::span<const std::span<const std::byte>> parts) noexcept;
/// The part of a file that is still to be sent.
struct file_part {
  int number;
  std::uint64_t offset, size;
  bool by_copies = false;  // sendfile() can't send this file, so it is read into a buffer and sent from there
};
tried try_send_file(descriptor& to, file_part& part) noexcept;
/// Gives the connection's number as `size`. Sets `*peer`, if `peer` is not null, to the peer's address if that is an IP address.
tried try_accept(descriptor& from, net::ip_address* peer = nullptr) noexcept;
/// Counts an operation of the running job. True: it was the last of the job's budget, so the task must let others run.
bool has_had_its_turn() noexcept;

/// What an operation fails with.
std::exception_ptr failure_of(std::error_code refused, const char* operation) noexcept;
[[noreturn]] void throw_failure_of(std::error_code refused, const char* operation);
inline std::error_code closed_here() noexcept { return make_error_code(errc::closed); }

// ---- operations that one successful try completes ---------------------------------------------------------------------------

// An act is one operation as an object. It has:
//   value_type, name           the type of its result, and its name in errors
//   if_taken                   the assertion's sentence if another one is under way in its direction; null: any number may be
//   at                         the descriptor; null: the operation fails with `closed`
//   direction which()          the direction whose readiness it waits for
//   bool may_try()             whether a try may succeed
//   tried attempt()            one try
//   value_type give(tried)     the result, after a try that neither failed nor has to wait

/// Tries an operation, and waits and tries again, until one of the tries need not wait; gives what that one came to. It lies in
/// the frame of the coroutine that awaits it, and is a frame itself, made by hand, in which the root suspends. So there is no
/// frame to be allocated for a wait, and a connection that waits for its next request has less memory than one that has a
/// coroutine for that. `Act` may be a reference.
template <class Act>
class operation_tries : frame, promise_base, public knows_roots {
 public:
  explicit operation_tries(Act act) noexcept : frame{nullptr, destroyed}, act_{std::forward<Act>(act)}, came_{} {}
  operation_tries(const operation_tries&) = delete;
  ~operation_tries() {
    if (owner != nullptr) descriptor_use::end(*act_.at, uses());
  }

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    continuation = caller;
    return begin(*caller.promise().owner);  // the coroutine may run elsewhere, or be gone, after this line
  }
  const tried& await_resume() const noexcept { return came_; }

 protected:
  using act_type = std::remove_reference_t<Act>;
  act_type& act() noexcept { return act_; }

 private:
  using wait = decltype(std::declval<descriptor&>().until_ready({}).operator co_await());
  static_assert(std::is_trivially_destructible_v<wait>, "its memory is that of the outcome, too");

  // True: the coroutine suspends.
  bool begin(root& self) noexcept {
    self.top = continuation;
    set({.refused = closed_here()});
    if (act_.at == nullptr) return false;
    owner = &self;
    if (!descriptor_use::begin(*act_.at, uses(), act_type::if_taken)) return false;
    if (!check_stop().await_ready()) [[unlikely]]
      return end_stopped(take_root(self)), true;
    const bool lets_others_run = has_had_its_turn();
    if (!lets_others_run && is_done()) return false;
    resume = go_on;
    self.top = handle();
    root& mine = take_root(self);
    if (lets_others_run) return repost(mine), true;
    if (waits(mine)) return true;
    end(mine);
    return false;
  }
  static void go_on(frame* self) {
    auto& mine = static_cast<operation_tries&>(*self);
    root& its = *mine.owner;
    if (!mine.is_over() && mine.waits(its)) return;
    mine.end(its);
    mine.continuation.resume();  // mine is gone after this line
  }
  static void destroyed(frame*) {}  // by a stop, which destroys the coroutine next, and so this

  std::uint32_t uses() const noexcept { return descriptor_use::uses_of(act_.which(), act_type::if_taken); }
  // False: it need not wait any more. True: it waits, or ends stopped, and may be gone.
  bool waits(root& self) noexcept {
    do {
      auto* const one = ::new (static_cast<void*>(&wait_)) wait(act_.at->until_ready(act_.which()).operator co_await());
      if (one->suspend(self)) return true;
    } while (!is_over());
    return false;
  }
  void end(root& self) noexcept {
    resume = nullptr;
    self.top = continuation;
  }
  bool is_over() noexcept {
    if (!act_.at->is_closed()) return is_done();
    set({.refused = closed_here()});
    return true;
  }
  bool is_done() noexcept {
    if (!act_.may_try()) return false;
    const tried got = act_.attempt();
    if (got.must_wait) return false;
    set(got);
    return true;
  }
  void set(const tried& how) noexcept { ::new (static_cast<void*>(&came_)) tried(how); }

  Act act_;
  union {
    tried came_;
    alignas(wait) std::byte wait_[sizeof(wait)];  // until the wait is over
  };
};

/// `co_await` of an operation.
template <class Act>
class operation_awaiter : public operation_tries<Act> {
 public:
  using operation_tries<Act>::operation_tries;
  typename Act::value_type await_resume() {
    const tried& came = operation_tries<Act>::await_resume();
    if (came.refused) [[unlikely]]
      throw_failure_of(came.refused, Act::name);
    return this->act().give(came);
  }
};

/// `co_await` of tries that have a name: g++ 12 copies an awaiter that is no temporary.
template <class Tries>
class named_tries : public knows_roots {
 public:
  explicit named_tries(Tries& those) noexcept : those_{those} {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    return those_.await_suspend(caller);
  }
  const tried& await_resume() const noexcept { return those_.await_resume(); }

 private:
  Tries& those_;
};

/// An operation as a task, for who takes no other awaitable. It fails by fail_with.
template <class Act>
task<typename Act::value_type> run_operation(Act act) {
  operation_tries<Act&> tries{act};  // by its name: the descriptor is used until the value was given
  const tried came = co_await named_tries{tries};
  if (came.refused) co_await fail_with(failure_of(came.refused, Act::name));
  co_return act.give(came);
}

/// An operation as a case of a select.
template <class Act>
class operation_case final : public select_case {
  using line = decltype(std::declval<descriptor&>().line_of({}).as_case());

 public:
  static constexpr bool gives_nothing = std::is_void_v<typename Act::value_type>;
  using result_type = std::conditional_t<gives_nothing, std::monostate, typename Act::value_type>;
  using state = operation_case;
  explicit operation_case(Act act) noexcept : act_(std::move(act)) {
    if (act_.at != nullptr) place_.emplace(act_.at->line_of(act_.which()).as_case());
  }
  operation_case(operation_case&& other) noexcept : operation_case{std::move(other.act_)} {}  // before it is awaited

  bool may_be_ready() const noexcept { return true; }  // only try_now(), under the lock, can tell
  std::uint32_t changes() const noexcept { return 0; }
  case_lock its_lock() noexcept { return place_ ? case_lock{place_->its_lock()} : case_lock{}; }
  // Whether a try may succeed. must_wait_again() makes the try, after the select has released its locks.
  bool try_now() noexcept { return !is_in_use() || asks_system_ || act_.may_try() || act_.at->is_closed(); }
  void finish() noexcept {}
  void prepare(select_wait& of, std::size_t index, root& self) noexcept {
    if (!place_) return;
    place_.emplace(act_.at->until_ready(act_.which()).as_case());
    place_->prepare(of, index, self);
  }
  void enter(const waiter& parked) noexcept override { place_->enter(parked); }
  void leave(bool was_in_line) noexcept override {
    if (place_) place_->leave(was_in_line);
  }
  result_type take() {
    if (came_.refused) std::rethrow_exception(failure_of(came_.refused, Act::name));
    if constexpr (gives_nothing)
      return {};
    else
      return act_.give(came_);
  }

  // Tells the select that a chosen case may be in vain: its try may find that it has to wait.
  static constexpr bool may_be_in_vain = true;
  bool must_wait_again() noexcept {
    if (!is_in_use() || act_.at->is_closed())
      came_ = {.refused = closed_here()};
    else if (asks_system_ || act_.may_try())
      came_ = act_.attempt();
    asks_system_ = false;
    return came_.must_wait;
  }
  void prepare_poll() noexcept { asks_system_ = true; }
  static bool turn_is_over() noexcept { return has_had_its_turn(); }

 private:
  void tell(wait_subjects& into) const noexcept override {
    static_cast<const select_case&>(*place_).tell(into);  // NOLINT: it is private there
  }
  // Begins the use of the descriptor with the first try. False: there is no descriptor, or it was closed before that.
  bool is_in_use() noexcept {
    if (!use_) use_.emplace(act_.at, act_.which(), Act::if_taken);
    return static_cast<bool>(*use_);
  }

  Act act_;
  std::optional<line> place_;
  std::optional<descriptor_use> use_;
  tried came_{.must_wait = true};
  bool asks_system_ = false;  // it tries whatever was reported: a select with an `otherwise` does not wait for a report

 public:
  static const case_layout seen;
};
// An optional has its value first.
WEFT_CASE_LAYOUT_IN(Act, operation_case<Act>, of_inner(offsetof(operation_case, place_), layout_of_case<line>()));

/// What a function such as stream::read returns: nothing happens until it is awaited.
template <class Act>
class WEFT_TO_BE_AWAITED("nothing happens until it is awaited") operation
    : public task_inside<operation<Act>, typename Act::value_type> {
 public:
  using value_type = typename Act::value_type;
  using may_be_a_case = void;
  operation(Act act) noexcept : act_(std::move(act)) {}

  operation_awaiter<Act> operator co_await() && { return operation_awaiter<Act>{std::move(act_)}; }
  WEFT_COROUTINE_WRAPPER task<value_type> as_task() && { return run_operation<Act>(std::move(act_)); }
  operation_case<Act> as_case() && { return operation_case<Act>{std::move(act_)}; }

 private:
  Act act_;
};

}  // namespace weft::detail
