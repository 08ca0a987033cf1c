// Stackful coroutines, resumed by hand: plain functions that stop in the middle, and go on there.
//
//     w::coroutine<int()> squares{[](auto& yield) {
//       for (int i = 1; i != 10; ++i) yield(i * i);
//       return 100;
//     }};
//     while (!squares.done()) use(squares.resume());  // 1, 4, 9, ...
//
// What ends a coroutine half-way is `stopped`, thrown out of the yield that it waits in, so its stack unwinds; swallowed,
// it is thrown again by the next yield.
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

/// The stack that something runs on.
struct stack_options {
  /// Usable bytes, at least; fewer than least_stack_size are taken for that. Memory is taken as it is used.
  std::size_t size = std::size_t{64} << 10;
  stack_pool* pool = nullptr;  ///< null: the process's
  /// Instead of a pool's: one's own, which outlives what runs on it; least_stack_size or more beside a large function
  /// (asserted), and no guard.
  std::span<std::byte> memory = {};
  const char* name = nullptr;  ///< for messages; outlives what runs on it
};

/// A function with a stack of its own, which can be left in the middle and gone on with.
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
/// The function gets a yielder and, unless In is void, what the first resume() was given. It returns what the last one
/// gives. Out and In are void, references, or types that can be moved. Move-only, while it does not run; empty after a move.
///
/// Fails     resume() throws what the function throws; then it is done. Where there is no stack: see stack_pool::take.
/// Lifetime  one that is destroyed half-way is gone on with once more: its yield throws `stopped`.
/// Threads   one at a time, not always the same.
/// Cost      no allocation on a warm stack; figures in docs/measurements/fibers.md.
template <class Out, class... Ins>
class coroutine<Out(Ins...)> {
  static_assert(sizeof...(Ins) <= 1, "a coroutine takes one value at a time: pass a struct or a tuple");
  using In = typename detail::only<Ins...>::type;

 public:
  /// What the function gives values out by: `In next = yield(out);`.
  ///
  /// Fails  throws what resume_throwing() brought, or `stopped` when the coroutine is destroyed, which is to pass: the next
  ///        yield throws it again. Called by anything but its own coroutine, it ends the program with a sentence.
  class yielder {
   public:
    yielder(const yielder&) = delete;
    /// Gives `out` to who resumes, and returns what the next resume() is given.
    [[gnu::always_inline]] In operator()(detail::or_nothing<Out> out)
      requires(!std::is_void_v<Out>)
    {
      return detail::passed_as<In>(core_.go_out(detail::place_of(out)));
    }
    /// The same, where Out is void.
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

  /// Whether there is something to go on with: false when it is done, or empty.
  explicit operator bool() const noexcept { return core_ != nullptr; }
  bool done() const noexcept { return core_ == nullptr; }

  /// Goes on with it until it yields or ends, and gives what it yields or returns.
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

  /// The same, but the yield that it waits in throws `failure`. One that has not begun never does: it ends with that.
  Out resume_throwing(std::exception_ptr failure) {
    WEFT_EXPECTS(failure != nullptr, "resume_throwing was given no exception: resume() goes on without one");
    return outcome(waiting_core().go_in_throwing(std::move(failure)));
  }

  /// Fetches the line that a resume() needs first. For who goes round more of them than a cache holds: some ten ahead, since
  /// as many resumes take as long as memory does.
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

/// Calls `f` on a stack of `size` bytes, for a callee that needs more than is left here: a deep recursion, a large array.
/// Gives what it returns, throws what it throws. The stack is the pool's, so the next call finds it warm.
///
///     auto tree = w::call_on_stack(std::size_t{64} << 20, [&] { return parse(deeply_nested); });
///
/// Suspends  in a fiber what `f` calls may await.
/// Fails     where there is no stack: see stack_pool::take.
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
