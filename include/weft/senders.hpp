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

/// Where senders run: a scheduler that stands for an executor. Made by as_scheduler.
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

/// A scheduler of an executor: of a pool, a strand, a runtime's or one of your own.
///
/// Cancel    what has not begun when its receiver's stop is requested, completes stopped, where it would have begun.
/// Lifetime  the executor outlives what is scheduled on it.
/// Threads   any. Cost: that of a post; nothing is allocated.
inline executor_scheduler as_scheduler(executor& ex) noexcept { return executor_scheduler{ex}; }

namespace interop {

/// What a task that awaits a sender offers it: its stop, and where the task runs.
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

/// Keeps an awaited sender's operation, and tells its outcome to the callback.
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

    // An exception of a value that is moved is the outcome, as if the sender had failed.
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
  // An operation does not move: it is made where it stays.
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

/// A task that runs a sender and gives what that completes with: nothing, a value, or a std::tuple of several.
///
///     auto [n, text] = co_await w::from_sender(stdexec::just(1, "one"s));
///
/// The sender sees the task's executor as its scheduler (stdexec::get_scheduler), and the task resumes on its own executor,
/// wherever the sender completes.
///
/// Cancel    a stop of the task is one of the sender's stop token; the task then waits for what the sender completes with. A
///           sender that completes stopped ends the task stopped.
/// Fails     with the exception that the sender completes with; of an std::error_code, with a std::system_error, and of any
///           other error with that error itself, thrown.
/// Lifetime  the sender is moved into the task; what it refers to outlives that.
/// Cost      a frame, which holds the sender's operation.
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

/// The sender of a task. Holds it, and can be connected once.
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

/// A sender that runs a task: on `ex`, or, without one, on the thread that starts it, up to its first wait, and then wherever
/// what it waits for completes. Completes where the task ends: with its value, its exception, or stopped.
///
///     stdexec::sync_wait(w::as_sender(workers, fetch(url)) | stdexec::then(print));
///
/// Cancel    a stop of the receiver's token stops the task; the sender completes when the task has ended.
/// Lifetime  the sender owns the task, and is connected once. A task that was never started is destroyed with the sender.
/// Threads   starts on any. The receiver is completed on the thread where the task ends.
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
