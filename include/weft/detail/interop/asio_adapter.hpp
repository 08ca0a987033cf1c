// What <weft/boost_asio.hpp> and <weft/standalone_asio.hpp> have in common: included by each, once, with WEFT_ASIO as the
// namespace of its Asio, WEFT_ASIO_SYSTEM for its error_code and system_error, and WEFT_ASIO_ADAPTER as the namespace to fill.
// So without `#pragma once`.
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <weft/executor.hpp>
#include <weft/from_callback.hpp>
#include <weft/task.hpp>
#include <weft/use_task.hpp>

namespace weft::WEFT_ASIO_ADAPTER {

// ---- operations as tasks --------------------------------------------------------------------------------------------------

template <class... Values>
struct value_of {
  using type = std::tuple<std::decay_t<Values>...>;
};
template <>
struct value_of<> {
  using type = void;
};
template <class Value>
struct value_of<Value> {
  using type = std::decay_t<Value>;
};

inline WEFT_ASIO_SYSTEM::error_code aborted() noexcept { return WEFT_ASIO::error::operation_aborted; }

/// As the rest of the program compares it: some Asios have a category of their own for what the system says.
inline std::error_code as_standard(const WEFT_ASIO_SYSTEM::error_code& code) noexcept {
  return code.category() == WEFT_ASIO::error::get_system_category()
             ? std::error_code{code.value(), std::system_category()}
             : std::error_code{code};
}

/// Whether this is what a coroutine of Asio's that was cancelled ends with.
inline bool says_aborted(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const WEFT_ASIO_SYSTEM::system_error& thrown) {
    return thrown.code() == aborted();
  } catch (...) {
    return false;
  }
}

/// What an operation and its task know of each other, until the handler is gone.
template <class T, class Executor>
class operation_state {
 public:
  operation_state(callback<T> done, const Executor& ex) : done_{done}, strand_{ex} {}

  const WEFT_ASIO::strand<Executor>& strand() const noexcept { return strand_; }
  WEFT_ASIO::cancellation_slot slot() noexcept { return signal_.slot(); }

  // The operation is begun between these. A handler that is destroyed meanwhile, because of an exception, tells nobody: the
  // exception does.
  void begins() noexcept { beginning_on_.store(std::this_thread::get_id(), std::memory_order_relaxed); }
  void has_begun() noexcept {
    beginning_on_.store({}, std::memory_order_relaxed);
    if (was_dropped_) done_.set_stopped();
  }

  void completes() noexcept { completes_with_values(); }
  template <class First, class... Others>
  void completes(First&& first, Others&&... others) noexcept {
    if constexpr (std::is_same_v<std::decay_t<First>, WEFT_ASIO_SYSTEM::error_code>) {
      if (!first) return completes_with_values(std::forward<Others>(others)...);
      fails(std::make_exception_ptr(std::system_error{as_standard(first)}), first == aborted());
    } else if constexpr (std::is_same_v<std::decay_t<First>, std::exception_ptr>) {
      if (first == nullptr) return completes_with_values(std::forward<Others>(others)...);
      fails(first, says_aborted(first));
    } else {
      completes_with_values(std::forward<First>(first), std::forward<Others>(others)...);
    }
  }

  void is_dropped() noexcept {
    if (beginning_on_.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
      was_dropped_ = true;
      return;
    }
    ends();
    done_.set_stopped();
  }

  /// A stop of the task, on whatever thread, once the operation has begun.
  static void request_stop(const std::shared_ptr<operation_state>& self) noexcept {
    self->stop_requested_.store(true, std::memory_order_relaxed);
    try {
      WEFT_ASIO::post(self->strand_, [self] {
        if (!self->is_over_) self->signal_.emit(WEFT_ASIO::cancellation_type::all);
      });
    } catch (...) {  // no memory: the operation goes on
    }
  }

 private:
  template <class... Values>
  void completes_with_values(Values&&... values) noexcept {
    ends();
    try {
      if constexpr (sizeof...(Values) == 0)
        done_();
      else if constexpr (sizeof...(Values) == 1)
        done_(static_cast<T>(std::forward<Values>(values))...);
      else
        done_(T{std::forward<Values>(values)...});
    } catch (...) {  // a value whose move throws
      done_.set_exception(std::current_exception());
    }
  }
  void fails(std::exception_ptr failure, bool is_aborted) noexcept {
    ends();
    if (is_aborted && stop_requested_.load(std::memory_order_relaxed))
      done_.set_stopped();
    else
      done_.set_exception(std::move(failure));
  }
  // Nothing is cancelled any more: what the slot has may refer to an object that is gone.
  void ends() noexcept { is_over_ = true; }

  callback<T> done_;
  WEFT_ASIO::strand<Executor> strand_;
  WEFT_ASIO::cancellation_signal signal_;
  bool is_over_ = false;  // in the strand
  bool was_dropped_ = false;
  std::atomic<std::thread::id> beginning_on_{};  // relaxed: a thread that finds itself has written it
  std::atomic<bool> stop_requested_{false};      // relaxed: what it causes goes through the strand, which orders it
};

/// What Asio calls. Called never, it says so as it goes.
template <class T, class Executor>
class operation_handler {
 public:
  using executor_type = WEFT_ASIO::strand<Executor>;
  using cancellation_slot_type = WEFT_ASIO::cancellation_slot;

  explicit operation_handler(std::shared_ptr<operation_state<T, Executor>> state) noexcept : state_{std::move(state)} {}
  operation_handler(operation_handler&&) = default;
  ~operation_handler() {
    if (state_ != nullptr) state_->is_dropped();
  }

  executor_type get_executor() const noexcept { return state_->strand(); }
  cancellation_slot_type get_cancellation_slot() const noexcept { return state_->slot(); }

  template <class... Args>
  void operator()(Args&&... args) {
    const auto state = std::move(state_);
    state->completes(std::forward<Args>(args)...);
  }

 private:
  std::shared_ptr<operation_state<T, Executor>> state_;
};

template <class Signature>
struct task_of_signature;
template <class R, class... Values>
struct task_of_signature<R(Values...)> : value_of<Values...> {};
template <class R, class... Values>
struct task_of_signature<R(WEFT_ASIO_SYSTEM::error_code, Values...)> : value_of<Values...> {};
template <class R, class... Values>
struct task_of_signature<R(std::exception_ptr, Values...)> : value_of<Values...> {};

/// What async_result is for use_task.
template <class Signature>
class task_of_operation {
 public:
  using value = typename task_of_signature<Signature>::type;
  using return_type = task<value>;

  template <class Initiation, class... Args>
  static return_type initiate(Initiation&& initiation, use_task_t, Args&&... args) {
    return run(std::decay_t<Initiation>(std::forward<Initiation>(initiation)),
               std::tuple<std::decay_t<Args>...>{std::forward<Args>(args)...});
  }

 private:
  template <class Initiation, class Args>
  static return_type run(Initiation initiation, Args args) {
    auto ex = WEFT_ASIO::get_associated_executor(initiation);
    using executor_type = decltype(ex);
    using state_type = operation_state<value, executor_type>;
    std::shared_ptr<state_type> state;
    const auto starts = [&](callback<value> done) {
      const auto mine = state = std::make_shared<state_type>(done, ex);
      mine->begins();
      std::apply(
          [&](auto&&... each) {
            std::move(initiation)(operation_handler<value, executor_type>{mine}, std::forward<decltype(each)>(each)...);
          },
          std::move(args));
      mine->has_begun();
    };
    co_return co_await from_callback<value>(starts, [&]() noexcept { state_type::request_stop(state); });
  }
};

// ---- an executor of weft's for Asio -----------------------------------------------------------------------------------------

/// An execution context of Asio whose handlers run on an executor of weft's: a pool, a strand, or one of your own.
///
///     w::boost_asio::execution_context on_pool{workers};
///     asio::co_spawn(on_pool.get_executor(), session(), asio::detached);
///
/// Its executor never blocks, and does not count outstanding work. Sockets and timers made with it are watched by a thread of
/// Asio's, and their handlers run here.
///
/// Lifetime  outlives what is made with it; its destructor waits for handlers that were posted, so it must not run in one, nor
///           where they would run. The executor of weft's outlives it.
/// Threads   any. An exception that leaves a handler ends the program.
/// Cost      a handler: an allocation, a post, and a mutex twice.
class execution_context : public WEFT_ASIO::execution_context {
 public:
  explicit execution_context(executor& ex) noexcept : runs_on_{&ex} {}
  ~execution_context() {
    std::unique_lock held{lock_};
    none_left_.wait(held, [&] { return handlers_ == 0; });
    held.unlock();
    shutdown();
    destroy();
  }

  class executor_type {
   public:
    execution_context& query(WEFT_ASIO::execution::context_t) const noexcept { return *context_; }
    static constexpr auto query(WEFT_ASIO::execution::blocking_t) noexcept {
      return WEFT_ASIO::execution::blocking_t{WEFT_ASIO::execution::blocking.never};
    }

    template <class F>
    void execute(F&& f) const {
      class handler final : public job {
       public:
        handler(execution_context& of, F&& f) : job{nullptr, run}, of_{of}, f_(std::forward<F>(f)) {}

       private:
        static void run(job& self) noexcept {
          const counted is_one{static_cast<handler&>(self).of_};
          const std::unique_ptr<handler> mine{static_cast<handler*>(&self)};
          std::move(mine->f_)();
        }
        execution_context& of_;
        std::decay_t<F> f_;
      };
      auto made = std::make_unique<handler>(*context_, std::forward<F>(f));
      context_->add_one();
      context_->runs_on_->post(*made.release());
    }

    friend bool operator==(const executor_type& a, const executor_type& b) noexcept { return a.context_ == b.context_; }
    friend bool operator!=(const executor_type& a, const executor_type& b) noexcept { return !(a == b); }

   private:
    friend class execution_context;
    explicit executor_type(execution_context& of) noexcept : context_{&of} {}

    execution_context* context_;
  };

  executor_type get_executor() noexcept { return executor_type{*this}; }

 private:
  // A handler, until it is destroyed.
  struct counted {
    execution_context& of;
    ~counted() { of.remove_one(); }
  };
  void add_one() {
    const std::lock_guard held{lock_};
    ++handlers_;
  }
  // Under the lock to its end: whoever waits for none destroys this.
  void remove_one() {
    const std::lock_guard held{lock_};
    if (--handlers_ == 0) none_left_.notify_all();
  }

  executor* runs_on_;
  std::mutex lock_;
  std::condition_variable none_left_;
  std::size_t handlers_ = 0;  // posted, and not destroyed
};

}  // namespace weft::WEFT_ASIO_ADAPTER
