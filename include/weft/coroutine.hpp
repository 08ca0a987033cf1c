// Stackful coroutines that are resumed by hand: plain functions that yield in the middle and continue there.
//
//     w::coroutine<int()> squares{[](auto& yield) {
//       for (int i = 1; i != 10; ++i) yield(i * i);
//       return 100;
//     }};
//     while (!squares.done()) use(squares.resume());  // 1, 4, 9, ...
//
// A coroutine that is destroyed half-way is unwound: the yield that it waits in throws `stopped`. If it swallows that, the next
// yield throws it again.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/fiber/coroutine_core.hpp>
#include <weft/error.hpp>
#include <weft/stack_pool.hpp>

namespace weft {

template <class Signature>
class coroutine;

/// The stack of a coroutine or fiber.
struct stack_options {
  /// The least number of usable bytes, but not less than least_stack_size. Memory is used only as far as the stack grows.
  std::size_t size = std::size_t{64} << 10;
  stack_pool* pool = nullptr;  ///< where it comes from; null: the process's pool
  /// Memory of the program's own to use instead of a pool's stack. It outlives what runs on it, has no guard, and has at least
  /// least_stack_size bytes besides a large function object (asserted).
  std::span<std::byte> memory = {};
  const char* name = nullptr;  ///< for messages; outlives what runs on the stack
};

/// A function with its own stack, which can yield in the middle and be resumed there.
///
///     w::coroutine<int(int)> sum{[](auto& yield, int next) {
///       int all = 0;
///       while (next != 0) next = yield(all += next);
///       return all;
///     }};
///     sum.resume(1);  // 1
///     sum.resume(2);  // 3
///     sum.resume(0);  // 3, and done
///
/// The function is called with a yielder and, unless In is void, the argument of the first resume(). Its return value is the
/// result of the last resume(). Out and In are void, references, or types that can be moved. Move-only, but not while it runs;
/// empty after a move.
///
/// Fails     resume() throws what the function throws; the coroutine is then done. Without a stack: see stack_pool::take.
/// Lifetime  destroyed half-way, it is resumed once more, and its yield throws `stopped`.
/// Threads   any thread, one at a time.
/// Cost      no allocation on a warm stack; figures in docs/measurements/fibers.md.
template <class Out, class... Ins>
class coroutine<Out(Ins...)> {
  static_assert(sizeof...(Ins) <= 1, "a coroutine takes one value at a time: pass a struct or a tuple");
  using In = typename detail::only<Ins...>::type;

 public:
  /// The yield function that the coroutine's function is given: `In next = yield(out);`.
  ///
  /// Fails   throws the exception that resume_throwing() was given; or `stopped` when the coroutine is destroyed, which must
  ///         not be swallowed: the next yield would throw it again.
  /// Misuse  called outside of its own coroutine, it ends the program with a sentence.
  class yielder {
   public:
    yielder(const yielder&) = delete;
    /// Returns `out` from resume(), and gives the argument of the next resume().
    [[gnu::always_inline]] In operator()(detail::or_nothing<Out> out)
      requires(!std::is_void_v<Out>)
    {
      return detail::passed_as<In>(core_.go_out(detail::place_of(out)));
    }
    /// The same where Out is void.
    [[gnu::always_inline]] In operator()()
      requires std::is_void_v<Out>
    {
      return detail::passed_as<In>(core_.go_out(nullptr));
    }

   private:
    friend coroutine;
    explicit yielder(detail::coroutine_core& core) noexcept : core_{core} {}
    detail::coroutine_core& core_;
  };

  coroutine() noexcept = default;  ///< empty: not to be resumed

  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, coroutine>) &&
            std::is_invocable_r_v<Out, std::decay_t<F>&, yielder&, Ins...>
  explicit coroutine(F&& f) : coroutine{stack_options{}, std::forward<F>(f)} {}

  template <class F>
    requires std::is_invocable_r_v<Out, std::decay_t<F>&, yielder&, Ins...>
  coroutine(stack_options options, F&& f) {
    using made = body<std::decay_t<F>>;
    constexpr std::size_t needed = sizeof(made) + alignof(made) + 64;  // the last for what lies away from the line
    if constexpr (needed > detail::free_above_stack) {
      WEFT_EXPECTS(options.memory.empty() || options.memory.size() >= needed + least_stack_size,
                   "a coroutine's function has no room in the memory that its stack is to lie in: that takes "
                   "weft::least_stack_size bytes beside the function's own");
      if (__builtin_add_overflow(options.size, needed, &options.size)) throw std::bad_alloc{};
    }
    detail::borrowed_stack on{options, detail::user_of<std::decay_t<F>>(f)};
    core_ = ::new (detail::place_on(*on, sizeof(made), alignof(made))) made{*on, std::forward<F>(f)};
    on.keep();
  }

  coroutine(coroutine&& other) noexcept : core_{std::exchange(other.core_, nullptr)} { expect_at_rest(); }
  coroutine& operator=(coroutine&& other) noexcept {
    coroutine given{std::move(other)};
    std::swap(core_, given.core_);
    return *this;
  }
  ~coroutine() {
    if (core_ != nullptr) core_->destroy();
  }

  /// Whether it can be resumed: not when it is done or empty.
  explicit operator bool() const noexcept { return core_ != nullptr; }
  bool done() const noexcept { return core_ == nullptr; }

  /// Runs it until it yields or ends, and gives what it yields or returns.
  [[gnu::always_inline]] Out resume(detail::or_nothing<In> in)
    requires(!std::is_void_v<In>)
  {
    return outcome(waiting_core().go_in(detail::place_of(in)));
  }
  [[gnu::always_inline]] Out resume()
    requires std::is_void_v<In>
  {
    return outcome(waiting_core().go_in(nullptr));
  }

  /// The same, but the yield that it waits in throws `failure`. A coroutine that has not begun does not begin, and ends with
  /// `failure`.
  Out resume_throwing(std::exception_ptr failure) {
    WEFT_EXPECTS(failure != nullptr, "resume_throwing was given no exception: resume() goes on without one");
    return outcome(waiting_core().go_in_throwing(std::move(failure)));
  }

  /// Prefetches the cache line that resume() reads first. For a loop over more coroutines than fit into a cache: call it for
  /// one some ten places ahead, since ten resumes take about as long as a read from memory.
  void prefetch() const noexcept { __builtin_prefetch(core_, 1); }

 private:
  template <class F>
  class body final : public detail::coroutine_core {
   public:
    template <class G>
    body(detail::stack_header& on, G&& f) : coroutine_core{on, run}, f_(std::forward<G>(f)) {}
    ~body() = delete;

   private:
    static void* run(coroutine_core& core, void* first) {
      struct function {  // gone when it has returned or thrown: nobody destroys a body
        F& f;
        ~function() { f.~F(); }
      } const mine{static_cast<body&>(core).f_};
      yielder yield{core};
      core.begin();
      if constexpr (std::is_void_v<Out>)
        return call(mine.f, yield, first), nullptr;
      else if constexpr (std::is_reference_v<Out>) {
        Out refers = call(mine.f, yield, first);
        return detail::place_of(refers);
      } else
        return ::new (static_cast<body&>(core).last_) Out(call(mine.f, yield, first));
    }
    static Out call(F& f, yielder& yield, [[maybe_unused]] void* first) {
      if constexpr (std::is_void_v<In>)
        return static_cast<Out>(detail::invoke(f, yield));
      else
        return static_cast<Out>(detail::invoke(f, yield, detail::passed_as<In>(first)));
    }

    using last = detail::stored<Out>;
    union {
      F f_;
    };
    alignas(last) std::byte last_[sizeof(last)];  // what it returned, until resume() has moved it out
  };

  // Whoever has resumed it comes back to where it was.
  void expect_at_rest() const noexcept {
    WEFT_EXPECTS(
        core_ == nullptr || core_->waits(),
        "a coroutine was moved while it runs: keep it in its place until it yields (a std::vector moves what it "
        "holds when it grows)");
  }

  detail::coroutine_core& waiting_core() const noexcept {
    if (core_ == nullptr || !core_->waits()) [[unlikely]]
      detail::fail_resume(core_);
    return *core_;
  }

  Out outcome(void* passed) {
    if (core_->has_ended()) [[unlikely]]
      return last(passed);
    return detail::passed_as<Out>(passed);
  }

  [[gnu::noinline]] Out last(void* passed) {
    struct finished {
      detail::coroutine_core* core;
      ~finished() { core->destroy(); }
    } const one{std::exchange(core_, nullptr)};
    if (auto failure = one.core->take_failure()) detail::rethrow(std::move(failure));
    if constexpr (!std::is_void_v<Out> && !std::is_reference_v<Out>) {
      struct value {
        Out* at;
        ~value() { at->~Out(); }
      } const returned{static_cast<Out*>(passed)};
      return std::move(*returned.at);
    } else {
      return detail::passed_as<Out>(passed);
    }
  }

  detail::coroutine_core* core_ = nullptr;
};

// ---- call_on_stack --------------------------------------------------------------------------------------------------

namespace detail { void call_on_stack(stack_header& on, void (*call)(void*), void* argument); }  // namespace detail

/// Calls `f` on another stack of `size` bytes: for a deep recursion, or large arrays, that may not fit into what is left of the
/// current one. Returns what `f` returns, and throws what it throws. The stack comes from the process's pool.
///
///     auto tree = w::call_on_stack(std::size_t{64} << 20, [&] { return parse(deeply_nested); });
///
/// Suspends  in a fiber, `f` may await.
/// Fails     without a stack: see stack_pool::take.
template <class F>
  requires std::is_invocable_v<F>
std::invoke_result_t<F> call_on_stack(std::size_t size, F&& f) {
  using result = std::invoke_result_t<F>;
  const detail::borrowed_stack on{{.size = size}, detail::user_of<std::remove_cvref_t<F>>(f)};
  if constexpr (std::is_void_v<result>) {
    auto call = [&f] { detail::invoke(std::forward<F>(f)); };
    detail::call_on_stack(*on, [](void* all) { (*static_cast<decltype(call)*>(all))(); }, &call);
  } else if constexpr (std::is_reference_v<result>) {
    std::remove_reference_t<result>* at = nullptr;
    auto call = [&] {
      result got = detail::invoke(std::forward<F>(f));
      at = __builtin_addressof(got);
    };
    detail::call_on_stack(*on, [](void* all) { (*static_cast<decltype(call)*>(all))(); }, &call);
    return static_cast<result>(*at);
  } else {
    std::optional<result> got;
    auto call = [&] { got.emplace(detail::invoke(std::forward<F>(f))); };
    detail::call_on_stack(*on, [](void* all) { (*static_cast<decltype(call)*>(all))(); }, &call);
    return std::move(*got);
  }
}

}  // namespace weft
