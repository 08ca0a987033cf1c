// Combines the requests of many tasks into one call, such as one query for a hundred keys, or one write to the disk for a
// hundred commits.
//
// It does not wait for a time. A call begins when all tasks that are ready have run, with the inputs that have come by then,
// and while it runs, the next inputs gather. So a single caller does not wait for others, and the more callers, the larger the
// batches.
//
// The calls are made by forks of a scope, not by a caller: if a caller is stopped, it leaves, and the others get their answers.
//
// Source: folly's BatchDispatcher, and group commit in databases. Rejected: a token for each task that will call
// (AtomicBatchDispatcher): one that is held for long delays all.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/detail/base/atomic.hpp>
#include <weft/future.hpp>
#include <weft/scope.hpp>
#include <weft/task.hpp>

namespace weft {

/// The options of a batcher.
struct batcher_options {
  std::size_t most = std::size_t(-1);  ///< the most inputs of one call
  std::size_t calls = 1;               ///< how many calls may run at a time
};

/// What a batcher has done. `inputs` divided by `calls` is the average size of a batch.
struct batcher_stats {
  std::size_t waiting;   ///< inputs that wait for a call, with those of callers that were stopped
  std::size_t running;   ///< calls that have begun and not ended
  std::uint64_t calls;   ///< calls that have begun so far
  std::uint64_t inputs;  ///< inputs in those calls
  std::size_t largest;   ///< the most inputs that a call has had
};

/// Combines the requests of many tasks into one call.
///
///     auto fetch = [&](std::vector<int> keys) -> task<std::vector<row>> { co_return co_await db.select(keys); };
///     batcher<int, row> rows{s, fetch};
///     row mine = co_await rows(7);  // in any number of tasks
///
/// Threads   any.
/// Lifetime  ends before its scope: as a local of the scope's body, or by close(). Inputs that came before are still served.
/// Cost      a future for each input, and two vectors for each call.
template <class Input, class Output>
class batcher {
  static_assert(std::is_nothrow_move_constructible_v<Input>,
                "inputs wait in a channel, so their move must not throw: collect std::unique_ptr");
  static_assert(std::is_nothrow_move_constructible_v<Output>,
                "outputs are handed to one after the other, so their move must not throw: give std::unique_ptr");

 public:
  /// `call(std::vector<Input>)` gives a task of a std::vector<Output> with an output for each input, in the same order; a
  /// different number ends the program. Calls run as forks of `in`, in its environment. `call` is moved in; if several calls
  /// may run at a time, each has a copy.
  template <class F>
    requires std::is_same_v<await_result<std::invoke_result_t<F&, std::vector<Input>>>, std::vector<Output>>
  batcher(scope& in, F call) : batcher{batcher_options{}, in, std::move(call)} {}
  template <class F>
    requires std::is_same_v<await_result<std::invoke_result_t<F&, std::vector<Input>>>, std::vector<Output>>
  batcher(batcher_options options, scope& in, F call) : shared_{std::make_shared<shared>()} {
    WEFT_EXPECTS(options.most != 0 && options.calls != 0, "a batcher makes calls of at least one input, one at a time");
    try {
      if constexpr (std::is_copy_constructible_v<F>)
        for (std::size_t i = 1; i != options.calls; ++i) in.fork(serve<F>, shared_, call, options.most);
      else
        WEFT_EXPECTS(options.calls == 1,
                     "a batcher that makes several calls at a time copies its function, which can't be");
      in.fork(serve<F>, shared_, std::move(call), options.most);
    } catch (...) {
      close();  // those that were forked end
      throw;
    }
  }
  batcher(batcher&& other) noexcept = default;
  ~batcher() { close(); }

  /// Gives the output for `input`.
  ///
  /// Suspends  until the call with this input has ended.
  /// Cancel    takes the input back if its call has not begun; otherwise the call goes on without this caller.
  /// Fails     with what the call throws, as do all inputs of that call; with std::bad_alloc; with errc::closed after close();
  ///           with errc::broken_promise if the scope ends before the call begins. Ends stopped if the call is stopped.
  task<Output> operator()(Input input) {
    WEFT_EXPECTS(shared_ != nullptr, "a batcher that was moved from was called");
    return ask(shared_, std::move(input));
  }

  /// Accepts no more inputs. Those that have come are still served.
  void close() noexcept {
    if (shared_ != nullptr) shared_->requests.close();
  }

  /// What it has done so far. Each figure is read by itself, so they need not agree. Costs the channel's lock.
  batcher_stats stats() const noexcept {
    WEFT_EXPECTS(shared_ != nullptr, "a batcher that was moved from was asked for its figures");
    const auto now = [](const auto& one) { return one.load(std::memory_order_relaxed); };  // each a figure
    return {shared_->requests.size(), now(shared_->running), now(shared_->calls), now(shared_->inputs),
            now(shared_->largest)};
  }

 private:
  struct request {
    Input input;
    promise<Output> answer;
  };
  struct shared {
    channel<request> requests{unbounded};
    // Figures, written where calls begin and end. No edge.
    detail::atomic<std::size_t> running{0}, largest{0};
    detail::atomic<std::uint64_t> calls{0}, inputs{0};
  };
  using queue = std::shared_ptr<shared>;

  // A call, from when its inputs are known.
  class counted {
   public:
    counted(shared& in, std::size_t inputs) noexcept : in_{in} {
      in_.running.fetch_add(1, std::memory_order_relaxed);      // as declared, like the others
      in_.calls.fetch_add(1, std::memory_order_relaxed);        // as declared
      in_.inputs.fetch_add(inputs, std::memory_order_relaxed);  // as declared
      std::size_t largest = in_.largest.load(std::memory_order_relaxed);
      while (largest < inputs && !in_.largest.compare_exchange_weak(largest, inputs, std::memory_order_relaxed,
                                                                    std::memory_order_relaxed)) {
      }
    }
    counted(const counted&) = delete;
    ~counted() { in_.running.fetch_sub(1, std::memory_order_relaxed); }  // as declared

   private:
    shared& in_;
  };

  static task<Output> ask(queue to, Input input) {
    promise<Output> promised;
    auto answer = promised.get_future();
    if (!to->requests.try_send(request{std::move(input), std::move(promised)})) throw error{errc::closed, "batcher"};
    to = nullptr;
    co_return co_await std::move(answer);
  }

  /// However the scope ends, nobody waits for ever.
  struct closing {
    channel<request>& what;
    ~closing() {
      what.close();
      while (what.try_receive()) {
      }
    }
  };

  template <class F>
  static task<> serve(queue from, F call, std::size_t most) {
    const closing at_end{from->requests};
    while (std::optional<request> next = co_await from->requests.receive()) {
      co_await yield();  // who can run now may come in
      std::vector<promise<Output>> answers;
      try {
        auto all = make_call(*from, next, call, most, answers);
        auto outputs = co_await as_result(std::move(all));
        for (std::size_t i = 0; i != answers.size(); ++i)
          if (outputs.has_value())
            answers[i].set_value(std::move((*outputs)[i]));
          else if (outputs.exception())
            answers[i].set_exception(outputs.exception());
          else
            answers[i].set_stopped();
        if (next) next->answer.set_exception(outputs.exception());  // no memory to take it into the call
      } catch (const std::bad_alloc&) {                             // nor for a call: its body has not begun
        next->answer.set_exception(std::current_exception());
      }
    }
  }

  // Those whose callers have left are left out. What is in `next` when this fails has its answer there.
  template <class F>
  static task<std::vector<Output>> make_call(shared& of, std::optional<request>& next, F& call, std::size_t most,
                                             std::vector<promise<Output>>& answers) {
    std::vector<Input> inputs;
    for (; next; next = inputs.size() != most ? of.requests.try_receive() : std::nullopt) {
      if (!next->answer.is_wanted()) continue;
      inputs.push_back(std::move(next->input));
      answers.push_back(std::move(next->answer));
    }
    if (inputs.empty()) co_return std::vector<Output>{};
    const counted this_one{of, inputs.size()};
    std::vector<Output> outputs = co_await call(std::move(inputs));
    WEFT_EXPECTS(outputs.size() == answers.size(),
                 "a batcher's call gave more outputs than there were inputs, or fewer");
    co_return outputs;
  }

  queue shared_;
};

}  // namespace weft
