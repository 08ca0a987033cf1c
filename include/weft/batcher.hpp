// Collects calls into one: whoever wants one thing calls, and what many want at a time is asked for in one call, such as
// one query for a hundred keys, or one write to the disk for a hundred commits.
//
// No time is waited for: a call begins with what is there when all that can run now has run, and while it runs the next
// ones gather. So one caller alone waits for nothing, and the more come, the larger the calls become.
//
// The calls are made by forks of a scope, so they belong to nobody who waits for them: one that is stopped leaves, and the
// others have their answers.
//
// Source: the first half is folly's BatchDispatcher, the second one is group commit, as data bases have it. Rejected: a
// token for each that will call (AtomicBatchDispatcher): one that is held too long holds up all.
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

/// How large a batch gets, and how many calls run at a time.
struct batcher_options {
  std::size_t most = std::size_t(-1);  ///< inputs in one call
  std::size_t calls = 1;               ///< at a time
};

/// What a batcher can tell about its calls. Inputs divided by calls is what it saves.
struct batcher_stats {
  std::size_t waiting;   ///< inputs in no call yet, with those of callers that have left
  std::size_t running;   ///< calls that have begun and not ended
  std::uint64_t calls;   ///< so far, that have begun
  std::uint64_t inputs;  ///< in those
  std::size_t largest;   ///< the most inputs of one call
};

/// Collects calls into one.
///
///     auto fetch = [&](std::vector<int> keys) -> task<std::vector<row>> { co_return co_await db.select(keys); };
///     batcher<int, row> rows{s, fetch};
///     row mine = co_await rows(7);  // in any number of tasks
///
/// Threads   any.
/// Lifetime  ends before its scope does: as a local of the scope's body, or by close(). Calls that have begun, and what
///           came before its end, are still served.
/// Cost      a future for each input, two vectors for each call.
template <class Input, class Output>
class batcher {
  static_assert(std::is_nothrow_move_constructible_v<Input>,
                "inputs wait in a channel, so their move must not throw: collect std::unique_ptr");
  static_assert(std::is_nothrow_move_constructible_v<Output>,
                "outputs are handed to one after the other, so their move must not throw: give std::unique_ptr");

 public:
  /// The calls are `call(inputs)`, with a std::vector<Input>, which gives a task of a std::vector<Output>: an output for
  /// each input, in that order, or the program ends. They are made in the environment of `in`. `call` is moved in; where
  /// several calls are made at a time, each has a copy.
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

  /// Gives the output for `input`, from a call that is made for many.
  ///
  /// Suspends  until that call has ended.
  /// Cancel    leaves. Its input is left out of a call that has not begun; one that has goes on.
  /// Fails     with what the call throws, as all that are in it, or std::bad_alloc where one can't be made: the next one
  ///           is. `closed`, if the batcher is; `broken_promise`, if its scope ends before the call is made. If the call is
  ///           stopped, this ends stopped.
  task<Output> operator()(Input input) {
    WEFT_EXPECTS(shared_ != nullptr, "a batcher that was moved from was called");
    return ask(shared_, std::move(input));
  }

  /// No more come; what is there is served.
  void close() noexcept {
    if (shared_ != nullptr) shared_->requests.close();
  }

  /// Each figure for itself: calls begin and end while they are read. Costs the channel's lock.
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
