// How work ends: result<T>, the class of weft's errors, and `stopped`.
//
//     w::result<int> how = co_await w::as_result(load());
//     if (how.has_value()) use(*how);
//     else if (how.is_stopped()) log("stopped");
//     else log(how.error().message());
//
// Work ends in one of three ways: with a value, with an exception, or stopped. A `result<T>` holds any of them. Any exception
// counts as a failure; what weft itself reports is an `error`, with a code for programs and a sentence for people. Inside
// tasks a stop is no exception: see task.hpp.
#pragma once

#include <exception>
#include <new>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <weft/detail/base/config.hpp>

namespace weft {

struct stop_cause;
class stop_token;
namespace detail { struct kept_causes; }  // namespace detail

/// What weft itself reports. Failures of the system keep their own std::error_code.
enum class errc {
  closed = 1,            ///< the other end is gone; nothing more will come
  timed_out,             ///< the deadline came; the operation had no effect, but a write that has begun closes its side
  broken_promise,        ///< a promise was destroyed before it was set
  promise_already_set,   ///< a promise was set twice
  future_already_taken,  ///< a promise gives one future
  no_room,               ///< a scope has as many children as it may have, or fork_here nests too deep
};

/// The category of errc, whose codes are std::error_codes.
const std::error_category& weft_category() noexcept;
inline std::error_code make_error_code(errc code) noexcept { return {static_cast<int>(code), weft_category()}; }

/// A failed operation: `code()` for programs, `what()` for people ("connect 10.0.0.7:443: connection refused").
class error : public std::system_error {
 public:
  /// Its what() is "operation subject: " and the message of `code`. Throws std::bad_alloc.
  error(std::error_code code, std::string_view operation, std::string_view subject = {});
};

/// Thrown where stopped work must be left by an exception: by sync_wait and run, through the stack of a fiber, and by value()
/// of a stopped result. It is no std::exception, so that handlers of errors leave it alone.
///
/// Threads   copies share their causes, and each may be used and destroyed on a thread of its own.
/// Cost      allocates if it has causes; a copy takes one atomic operation.
class stopped {
 public:
  stopped() noexcept = default;
  stopped(const stopped& other) noexcept;
  stopped(stopped&& other) noexcept : causes_{std::exchange(other.causes_, nullptr)} {}
  stopped& operator=(stopped other) noexcept {
    std::swap(causes_, other.causes_);
    return *this;
  }
  ~stopped() {
    if (causes_ != nullptr) let_go();
  }

  /// With a copy of these causes; with none if there is no memory for it.
  explicit stopped(std::span<const stop_cause> causes) noexcept;

  /// Why the work was stopped, the nearest cause first, as why_stopped() gives it. Valid as long as this object or a copy of it
  /// lives.
  ///
  /// Thrown by sync_wait and run, it has the cause of their stop token; if that was not stopped, the causes by which a part
  /// with a stop of its own (as below with_deadline) was stopped, and with it what awaited that part: up to four causes, of a
  /// fork or a child of a join the first one. Empty where no cause is known: in one that the program has made, where a
  /// stopped outcome was stored (value() of a result, get() of a future), and of a part that a guest runtime has run.
  std::span<const stop_cause> causes() const noexcept;

 private:
  void let_go() noexcept;
  const detail::kept_causes* causes_ = nullptr;
};

/// Is called with each failure that nobody can receive any more, such as that of a loser of when_any that fails after another
/// child has won, or of an operation that goes on after detach_on_stop. `operation` names the source.
///
/// Threads   called on the thread where the failure occurs, perhaps on several at once.
using lost_error_handler = void (*)(const char* operation, const std::exception_ptr& failure) noexcept;

/// Sets the handler of the process, and returns the one before. The default one, which null restores, writes a line to stderr.
/// It belongs to the process and not to an env, since the work that could have received the failure has ended.
///
/// Threads   any.
lost_error_handler set_lost_error_handler(lost_error_handler handler) noexcept;

namespace detail {
void lose_error(const char* operation, const std::exception_ptr& failure) noexcept;
/// Throws `failure`, out of line.
[[noreturn]] void rethrow(const std::exception_ptr& failure);
[[noreturn]] void rethrow(std::exception_ptr&& failure);  // which is null then
/// std::current_exception(), in a handler at the end of a task or fiber. Ends the program if the thread is being ended.
std::exception_ptr caught() noexcept;
[[noreturn]] void throw_stopped();
/// The same, with the cause of `asked` if that was stopped.
[[noreturn]] void throw_stopped(stop_token asked);
/// The code inside `failure`, if it is a std::system_error; else a default one.
std::error_code code_of(const std::exception_ptr& failure) noexcept;

struct nothing {};
template <class T>
using stored = std::conditional_t<std::is_void_v<T>, nothing,
                                  std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>>;
}  // namespace detail

/// The outcome of work: a value, an exception, or stopped.
///
/// It can be moved and copied if T can. Access to the value throws the exception, or `stopped`, if it holds that instead.
template <class T>
class [[nodiscard("a result may be a failure")]] result {
  using stored = detail::stored<T>;

 public:
  using value_type = T;

  result() noexcept : state_{state::stopped} {}  ///< stopped
  result(const stopped&) noexcept : state_{state::stopped} {}
  result(std::exception_ptr failure) noexcept : exception_{std::move(failure)}, state_{state::exception} {}
  template <class... Args>
    requires(!std::is_reference_v<T>)
  explicit result(std::in_place_t, Args&&... args) : value_(std::forward<Args>(args)...), state_{state::value} {}
  template <class Object>
    requires std::is_reference_v<T>
  explicit result(std::in_place_t, Object& object) noexcept : value_{std::addressof(object)}, state_{state::value} {}

  result(result&& other) noexcept(std::is_nothrow_move_constructible_v<stored>) { take(std::move(other)); }
  result(const result& other)
    requires std::is_copy_constructible_v<stored>
  {
    take(other);
  }
  result& operator=(result other) noexcept(std::is_nothrow_move_constructible_v<stored>) {
    clear();
    take(std::move(other));
    return *this;
  }
  ~result() { clear(); }

  bool has_value() const noexcept { return state_ == state::value; }  ///< false: it has failed, or was stopped
  explicit operator bool() const noexcept { return has_value(); }
  bool is_stopped() const noexcept { return state_ == state::stopped; }  ///< neither a value nor an exception

  /// The exception; null if there is none.
  std::exception_ptr exception() const noexcept {
    return state_ == state::exception ? exception_ : std::exception_ptr{};
  }
  /// The code of the exception, if that is a std::system_error; else a default std::error_code. Cost: a throw and a catch.
  std::error_code error() const noexcept {
    return state_ == state::exception ? detail::code_of(exception_) : std::error_code{};
  }

  /// The value. Throws the exception, or `stopped`, if there is none.
  decltype(auto) value() & { return (check(), get(*this)); }
  decltype(auto) value() const& { return (check(), get(*this)); }
  decltype(auto) value() && { return (check(), get(std::move(*this))); }
  decltype(auto) operator*() & { return value(); }
  decltype(auto) operator*() const& { return value(); }
  decltype(auto) operator*() && { return std::move(*this).value(); }
  auto* operator->()
    requires(!std::is_void_v<T>)
  {
    return std::addressof(value());
  }
  auto* operator->() const
    requires(!std::is_void_v<T>)
  {
    return std::addressof(value());
  }

  /// The value, or `other` if there is none.
  template <class U>
    requires(!std::is_void_v<T>)
  T value_or(U&& other) && {
    return has_value() ? static_cast<T>(get(std::move(*this))) : static_cast<T>(std::forward<U>(other));
  }

 private:
  enum class state { value, exception, stopped };

  template <class Self>
  static decltype(auto) get(Self&& self) noexcept {
    if constexpr (std::is_void_v<T>)
      return;
    else if constexpr (std::is_reference_v<T>)
      return static_cast<T>(*self.value_);
    else
      return (std::forward<Self>(self).value_);
  }
  void check() const {
    if (state_ == state::value) return;
    if (state_ == state::exception) detail::rethrow(exception_);
    detail::throw_stopped();
  }
  template <class Other>
  void take(Other&& other) {
    const state theirs = other.state_;
    if (theirs == state::value)
      ::new (static_cast<void*>(std::addressof(value_))) stored(std::forward<Other>(other).value_);
    else if (theirs == state::exception)
      ::new (static_cast<void*>(std::addressof(exception_))) std::exception_ptr(std::forward<Other>(other).exception_);
    state_ = theirs;  // not before: a copy may throw
  }
  void clear() noexcept {
    if (state_ == state::value)
      value_.~stored();
    else if (state_ == state::exception)
      exception_.~exception_ptr();
    state_ = state::stopped;
  }

  union {
    stored value_;
    std::exception_ptr exception_;
  };
  state state_;
};

}  // namespace weft

template <>
struct std::is_error_code_enum<weft::errc> : std::true_type {};
