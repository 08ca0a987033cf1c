// Senders and tasks await each other: the senders of std::execution (P2300), as NVIDIA's stdexec has them.
//
//     int n = co_await w::from_sender(stdexec::just(20) | stdexec::then([](int n) { return n + 1; }));  // in a task
//
//     stdexec::sync_wait(w::as_sender(workers, fetch(url)) | stdexec::then(print));  // a task in a chain of senders
//
//     stdexec::schedule(w::as_scheduler(workers)) | stdexec::then(compute);  // a chain on weft's pool
//
// Values, errors and stops map one to one, both ways. Needs stdexec's headers, which weft.hpp does not include.
#pragma once

#include <exception>
#include <optional>
#include <stdexec/execution.hpp>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <weft/env.hpp>
#include <weft/error.hpp>
#include <weft/executor.hpp>
#include <weft/from_callback.hpp>
#include <weft/stop.hpp>
#include <weft/task.hpp>

namespace weft {

/// A scheduler of P2300 that runs on an executor. Made by as_scheduler().
class executor_scheduler {
  template <class Receiver>
  class operation final : job {
   public:
    using operation_state_concept = stdexec::operation_state_t;

    operation(executor& ex, Receiver receiver) : job{nullptr, run}, executor_{ex}, receiver_(std::move(receiver)) {}
    operation(const operation&) = delete;

    void start() & noexcept { executor_.post(*this); }

   private:
    static void run(job& self) noexcept {
      Receiver& receiver = static_cast<operation&>(self).receiver_;
      if (stdexec::get_stop_token(stdexec::get_env(receiver)).stop_requested())
        stdexec::set_stopped(std::move(receiver));
      else
        stdexec::set_value(std::move(receiver));
    }

    executor& executor_;
    Receiver receiver_;
  };

  class environment {
   public:
    explicit environment(executor& ex) noexcept : executor_{&ex} {}
    template <class Tag>
    executor_scheduler query(stdexec::get_completion_scheduler_t<Tag>) const noexcept {
      return executor_scheduler{*executor_};
    }

   private:
    executor* executor_;
  };

  class sender {
   public:
    using sender_concept = stdexec::sender_t;
    using completion_signatures = stdexec::completion_signatures<stdexec::set_value_t(), stdexec::set_stopped_t()>;

    explicit sender(executor& ex) noexcept : executor_{&ex} {}
    template <class Receiver>
    auto connect(Receiver receiver) const {
      return operation<Receiver>{*executor_, std::move(receiver)};
    }
    environment get_env() const noexcept { return environment{*executor_}; }

   private:
    executor* executor_;
  };

 public:
  using scheduler_concept = stdexec::scheduler_t;

  explicit executor_scheduler(executor& ex) noexcept : executor_{&ex} {}  ///< as as_scheduler(ex)

  sender schedule() const noexcept { return sender{*executor_}; }  ///< completes with nothing, on the executor
  /// Parallel where the executor runs jobs at the same time, else weakly parallel.
  stdexec::forward_progress_guarantee query(stdexec::get_forward_progress_guarantee_t) const noexcept {
    return executor_->runs_in_parallel() ? stdexec::forward_progress_guarantee::parallel
                                         : stdexec::forward_progress_guarantee::weakly_parallel;
  }
  friend bool operator==(executor_scheduler, executor_scheduler) = default;

 private:
  executor* executor_;
};

/// Makes a scheduler of an executor: of a pool, a strand, a runtime, or one of the program's own.
///
/// Cancel    work that has not begun when its receiver's stop is requested completes stopped, on the executor.
/// Lifetime  the executor outlives what is scheduled on it.
/// Threads   any. Cost: that of a post; nothing is allocated.
inline executor_scheduler as_scheduler(executor& ex) noexcept { return executor_scheduler{ex}; }

namespace interop {

/// The environment that an awaited sender sees: the stop token and the scheduler of the task.
struct sender_environment {
  stdexec::inplace_stop_token stop;
  executor* runs_on;

  stdexec::inplace_stop_token query(stdexec::get_stop_token_t) const noexcept { return stop; }
  executor_scheduler query(stdexec::get_scheduler_t) const noexcept { return executor_scheduler{*runs_on}; }
};

template <class... Values>
struct values_of {
  using type = std::tuple<Values...>;
};
template <>
struct values_of<> {
  using type = void;
};
template <class Value>
struct values_of<Value> {
  using type = Value;
};
template <class... Values>
using value_of = typename values_of<std::decay_t<Values>...>::type;

template <class... Ways>
struct only_way {
  static constexpr bool is_one = sizeof...(Ways) <= 1;
  using type = void;
};
template <class Way>
struct only_way<Way> {
  static constexpr bool is_one = true;
  using type = Way;
};

template <class Sender>
using ways_to_complete = stdexec::value_types_of_t<Sender, sender_environment, value_of, only_way>;

/// Holds the operation state of an awaited sender, and passes its outcome to the callback.
template <class Sender, class T>
class sender_operation {
 public:
  explicit sender_operation(executor* runs_on) noexcept : runs_on_{runs_on != nullptr ? runs_on : &here_} {}

  void start(Sender&& sender, callback<T> done) {
    done_.emplace(done);
    state_.emplace(connects{std::move(sender), *this});
    stdexec::start(*state_);  // this may be gone
  }
  void request_stop() noexcept { stop_.request_stop(); }

 private:
  class receiver {
   public:
    using receiver_concept = stdexec::receiver_t;

    explicit receiver(sender_operation& of) noexcept : of_{&of} {}

    // An exception that the move of a value throws becomes the outcome, as if the sender had failed.
    template <class... Values>
    void set_value(Values&&... values) noexcept {
      try {
        if constexpr (sizeof...(Values) == 1)
          (*of_->done_)(static_cast<T>(std::forward<Values>(values))...);
        else if constexpr (sizeof...(Values) == 0)
          (*of_->done_)();
        else
          (*of_->done_)(T{std::forward<Values>(values)...});
      } catch (...) {
        of_->done_->set_exception(std::current_exception());
      }
    }
    template <class Failure>
    void set_error(Failure&& failure) noexcept {
      if constexpr (std::is_same_v<std::decay_t<Failure>, std::exception_ptr>)
        of_->done_->set_exception(std::forward<Failure>(failure));
      else if constexpr (std::is_same_v<std::decay_t<Failure>, std::error_code>)
        of_->done_->set_exception(std::make_exception_ptr(std::system_error{failure}));
      else
        of_->done_->set_exception(std::make_exception_ptr(std::forward<Failure>(failure)));
    }
    void set_stopped() noexcept { of_->done_->set_stopped(); }

    sender_environment get_env() const noexcept { return {of_->stop_.get_token(), of_->runs_on_}; }

   private:
    sender_operation* of_;
  };
  // An operation state can't be moved: it is made in place.
  struct connects {
    Sender&& sender;
    sender_operation& of;
    operator stdexec::connect_result_t<Sender, receiver>() && {
      return stdexec::connect(std::forward<Sender>(sender), receiver{of});
    }
  };

  inline_executor here_;
  executor* runs_on_;
  stdexec::inplace_stop_source stop_;
  std::optional<callback<T>> done_;
  std::optional<stdexec::connect_result_t<Sender, receiver>> state_;
};

}  // namespace interop

/// Makes a task that runs a sender and gives its values: nothing, one value, or a std::tuple of several.
///
///     auto [n, text] = co_await w::from_sender(stdexec::just(1, "one"s));
///
/// The sender sees the task's executor as its scheduler (stdexec::get_scheduler). The task resumes on its own executor,
/// wherever the sender completes.
///
/// Suspends  until the sender has completed.
/// Cancel    a stop of the task requests a stop by the sender's stop token; then the task waits for the sender to complete. A
///           sender that completes stopped ends the task stopped.
/// Fails     throws the exception that the sender completes with; for a std::error_code, a std::system_error; for any other
///           error, the error itself.
/// Lifetime  the sender is moved into the task; what it refers to outlives the task.
/// Cost      a frame, which holds the sender's operation state.
///
/// A sender with several sets of values does not compile: `| stdexec::into_variant()` makes one of them.
template <class Sender>
  requires stdexec::sender_in<Sender, interop::sender_environment>
auto from_sender(Sender sender) -> task<typename interop::ways_to_complete<Sender>::type> {
  using ways = interop::ways_to_complete<Sender>;
  static_assert(ways::is_one,
                "from_sender: this sender has several ways to complete with values: `| stdexec::into_variant()`");
  using value = typename ways::type;
  interop::sender_operation<Sender, value> operation{current_env().executor};
  co_return co_await from_callback<value>([&](callback<value> done) { operation.start(std::move(sender), done); },
                                          [&]() noexcept { operation.request_stop(); });
}

namespace interop {

/// A sender that owns a task, and can be connected once.
template <class T>
class task_sender {
  template <class Receiver>
  class operation {
   public:
    using operation_state_concept = stdexec::operation_state_t;

    operation(executor* ex, task<T>&& work, Receiver receiver)
        : executor_{ex}, work_(std::move(work)), receiver_(std::move(receiver)) {}
    operation(const operation&) = delete;

    void start() & noexcept {
      auto ends = [this](result<T> outcome) { complete(std::move(outcome)); };
      try {
        forwards_.emplace(stdexec::get_stop_token(stdexec::get_env(receiver_)), forward{&stop_});
        if (executor_ != nullptr)
          weft::start(*executor_, std::move(work_), std::move(ends), stop_.token());
        else
          weft::start(std::move(work_), std::move(ends), stop_.token());
        // this may be gone
      } catch (...) {  // no memory to begin with
        forwards_.reset();
        stdexec::set_error(std::move(receiver_), std::current_exception());
      }
    }

   private:
    struct forward {
      stop_source* to;
      void operator()() const noexcept { to->request_stop({.reason = "the receiver of a sender was stopped"}); }
    };
    using token = stdexec::stop_token_of_t<stdexec::env_of_t<Receiver>>;

    void complete(result<T>&& outcome) noexcept {
      forwards_.reset();  // waits for a stop that is being delivered
      if (outcome.is_stopped())
        stdexec::set_stopped(std::move(receiver_));
      else if (std::exception_ptr failure = outcome.exception())
        stdexec::set_error(std::move(receiver_), std::move(failure));
      else if constexpr (std::is_void_v<T>)
        stdexec::set_value(std::move(receiver_));
      else
        stdexec::set_value(std::move(receiver_), std::move(outcome).value());
    }

    executor* executor_;
    task<T> work_;
    Receiver receiver_;
    stop_source stop_;
    std::optional<stdexec::stop_callback_for_t<token, forward>> forwards_;
  };

  template <class Value>
  struct value_signature {
    using type = stdexec::set_value_t(Value);
  };
  template <class Value>
    requires std::is_void_v<Value>
  struct value_signature<Value> {
    using type = stdexec::set_value_t();
  };

 public:
  using sender_concept = stdexec::sender_t;
  using completion_signatures =
      stdexec::completion_signatures<typename value_signature<T>::type, stdexec::set_error_t(std::exception_ptr),
                                     stdexec::set_stopped_t()>;

  task_sender(executor* ex, task<T>&& work) noexcept : executor_{ex}, work_(std::move(work)) {}

  template <class Receiver>
  auto connect(Receiver receiver) && {
    return operation<Receiver>{executor_, std::move(work_), std::move(receiver)};
  }

 private:
  executor* executor_;
  task<T> work_;
};

}  // namespace interop

/// Makes a sender that runs a task and completes as it ends: with its value, its exception, or stopped. The task runs on `ex`.
/// Without `ex`, it starts on the thread that starts the sender, runs up to its first wait, and resumes wherever what it waits
/// for completes.
///
///     stdexec::sync_wait(w::as_sender(workers, fetch(url)) | stdexec::then(print));
///
/// Cancel    a stop of the receiver's token stops the task; the sender completes when the task has ended.
/// Lifetime  the sender owns the task, and is connected once. A task that was never started is destroyed with the sender.
/// Threads   may be started on any. The receiver is completed on the thread where the task ends.
/// Cost      that of start(): one allocation.
template <class T>
interop::task_sender<T> as_sender(task<T> work) noexcept {
  return {nullptr, std::move(work)};
}
template <class T>
interop::task_sender<T> as_sender(executor& ex, task<T> work) noexcept {
  return {&ex, std::move(work)};
}

}  // namespace weft
