// Generators: coroutines that yield values one by one to the loop that asks for them, without a scheduler:
//
//     weft::generator<const node&> in_order(const node& n) {
//       if (n.left) co_yield weft::elements_of(in_order(*n.left));
//       co_yield n;
//       if (n.right) co_yield weft::elements_of(in_order(*n.right));
//     }
//     for (const node& n : in_order(root)) print(n);
//
// Generators nest: while one waits in `co_yield elements_of(child)`, the child's values go directly to the consumer. The
// consumer holds the *root*. The root points to the *leaf*, the generator that runs, and each nested generator points to its
// parent. So a value costs one resume at any depth:
//
//     consumer -> root --leaf_-->  c        the consumer resumes c, and c shows its value to the root
//                   ^              |
//                   +-- b <-parent_+        when c ends, b is the leaf again
//
// Only advance() resumes. A generator that starts a child, or ends, sets the next leaf and suspends. So two bodies are never on
// the machine stack at once, whether or not the compiler makes tail calls, and a million nested generators run on a few hundred
// bytes of it. Destruction goes from the leaf to the root in a loop, for the same reason. While nothing is nested, clang can
// inline all of it, and compiles a loop over a generator whose body it knows to a plain loop without a frame.
//
// Invariants
//   root_->leaf_ is the suspended body that runs next; null while that is the root itself.
//   root_->value_ is what the consumer sees; null before the first value, while a body runs, and at the end.
//   A nested frame belongs to its chain, not to the object that was yielded: its parent frees it when it resumes, or the root's
//   destruction does. (So nothing in a co_yield expression frees anything, and it does no harm that g++ 12 destroys it twice.)
//
// Rejected: a symmetric transfer from child to parent, which grows the stack where it is no tail call; an exception slot
// in every parent's awaiter (a store and a test for each child, for what almost never happens); clang's
// coro_return_type, which would warn of arguments that die too early, but refuses every function that returns a generator
// and is no coroutine, std::views::all among them.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <new>
#include <span>  // declares ranges::begin and enable_view as well, at a third of what <ranges> costs to compile
#include <type_traits>
#include <utility>
#include <weft/async_generator.hpp>  // for values that must be waited for
#include <weft/detail/base/config.hpp>
#include <weft/detail/memory/frame_memory.hpp>

namespace weft {

template <class Range>
class elements_of;

namespace detail {
template <class Reference>
class generator_promise;
}

/// The return type of a generator: a coroutine that yields values of type T. It is an input range and a view, and can be
/// iterated once.
///
/// `*it` is a T&&: a generator<T> gives values to move from (co_yield of an lvalue yields a copy); a generator<T&> or
/// generator<const T&> gives references to what was yielded, and copies nothing. `Value` is the range's value type, where that
/// differs: generator<std::string_view, std::string>.
///
/// Suspends  its body, after each co_yield, until the consumer asks for the next value. The body does not start before begin().
/// Fails     what the body throws comes out of begin() or ++; from a nested generator it comes out of the co_yield first.
/// Lifetime  references that the body took as parameters outlive the generator. Its destructor destroys the body's locals where
///           it stands. A value lives until the next ++. To begin, advance, read or destroy a generator while its body runs
///           ends the program with a sentence.
/// Threads   one at a time. The body runs on the thread that iterates.
/// Cost      a value: one indirect call, some 2 ns, at any depth; none where clang inlines the body. A generator: one frame,
///           from the worker's frame memory or from the allocator that follows a std::allocator_arg.
template <class T, class Value = std::remove_cvref_t<T>>
class [[nodiscard("a generator runs only while it is iterated")]] generator {
 public:
  class promise_type;
  class iterator;

  generator() noexcept = default;  ///< empty; must not be iterated
  generator(generator&& other) noexcept : promise_{std::exchange(other.promise_, nullptr)} {}
  generator& operator=(generator other) noexcept {
    std::swap(promise_, other.promise_);
    return *this;
  }
  WEFT_ALWAYS_INLINE inline ~generator();  // so that clang sees where the frame ends

  /// Whether there is a body: false if it was moved from, or yielded by elements_of().
  explicit operator bool() const noexcept { return promise_ != nullptr; }

  /// Runs the body to its first value. May be called once, and not by the body.
  iterator begin();
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  using promise_base = detail::generator_promise<T&&>;
  friend promise_base;  // takes a nested generator's frame over

  explicit generator(promise_type& promise) noexcept : promise_{&promise} {}

  promise_base* promise_ = nullptr;  // the root of its own iteration; null once moved from
};

/// Has a generator yield all elements of a range: `co_yield elements_of(range)`.
///
/// A generator of the same T is nested: its values reach the consumer at no cost for the levels between, and it is empty
/// afterwards, also if it was an lvalue. Any other range is iterated.
///
/// Fails     what the range throws comes out of the co_yield expression.
/// Lifetime  refers to the range: write it inside the co_yield expression.
template <class Range>
class elements_of {
 public:
  /// Refers to the range.
  constexpr explicit elements_of(Range&& range) noexcept : range_{std::forward<Range>(range)} {}

  /// The range, with its value category.
  constexpr Range&& get() const noexcept { return std::forward<Range>(range_); }

 private:
  Range&& range_;  // no copy, since g++ 12 destroys what a temporary in a co_yield expression holds by value twice
};
template <class Range>
elements_of(Range&&) -> elements_of<Range&&>;

// ---- implementation -------------------------------------------------------------------------------------------------

namespace detail {

// All generators with one Reference share this, whatever their Value: they can nest in each other.
template <class Reference>
class generator_promise : public promise_allocated {
 public:
  generator_promise() noexcept : value_{nullptr} {}
  generator_promise(generator_promise&&) = delete;  // linked by address
  ~generator_promise() {
    if (failed_) failure_.~exception_ptr();
  }

  // For the consumer, on a root.

  void begin() noexcept { has_begun_ = true; }
  bool has_begun() const noexcept { return has_begun_; }
  bool has_ended() const noexcept { return value_ == nullptr; }
  bool runs() noexcept { return value_ == nullptr && has_begun_ && !frame().done(); }
  Reference value() noexcept {
    if (value_ == nullptr) [[unlikely]]
      fail(runs() ? "an iterator of a generator was dereferenced by the generator's own body, while that runs"
                  : "an iterator of a generator was dereferenced at the end");
    return static_cast<Reference>(*value_);
  }
  void expect_value() noexcept {
    if (value_ == nullptr) [[unlikely]]
      fail(runs() ? "an iterator of a generator was advanced by the generator's own body, while that runs"
                  : "an iterator of a generator was moved past the end");
  }

  void advance() {
    value_ = nullptr;
    if (leaf_ == nullptr) frame().resume();  // by itself, so that clang sees which body this is
    while (value_ == nullptr && !frame().done()) [[unlikely]]
      (leaf_ != nullptr ? leaf_ : this)->frame().resume();  // to its next value, or until the leaf changes
  }

  WEFT_ALWAYS_INLINE void destroy() noexcept {
    WEFT_EXPECTS(!runs(), "a generator was destroyed, or assigned to, by its own body, while that runs");
    if (leaf_ != nullptr) [[unlikely]]
      destroy_nested();
    frame().destroy();
  }

  // For the body.

  std::suspend_always initial_suspend() const noexcept { return {}; }

  auto final_suspend() noexcept {
    if (root_ != nullptr) root_->leaf_ = parent_;
    return std::suspend_always{};
  }

  void return_void() const noexcept {}

  void unhandled_exception() {
    if (root_ == nullptr) throw;  // out of advance(), to the consumer
    ::new (static_cast<void*>(&failure_)) std::exception_ptr{std::current_exception()};
    failed_ = true;
  }

  std::suspend_always yield_value(Reference value) noexcept {
    root().value_ = std::addressof(value);
    return {};
  }

  // An lvalue, where the consumer may move from what it gets: it gets a copy, which lives in the co_yield expression.
  auto yield_value(const std::remove_reference_t<Reference>& value)
    requires std::is_rvalue_reference_v<Reference> &&
             std::constructible_from<std::remove_cvref_t<Reference>, const std::remove_reference_t<Reference>&>
  {
    return copied{value};
  }

  template <class T, class Value>
    requires std::same_as<T&&, Reference>
  auto yield_value(elements_of<generator<T, Value>&&> nested) noexcept {
    return delegated_to(nested.get());
  }
  template <class T, class Value>
    requires std::same_as<T&&, Reference>
  auto yield_value(elements_of<generator<T, Value>&> nested) noexcept {
    return delegated_to(nested.get());
  }

  template <std::ranges::input_range Range>
    requires requires(generator_promise& self, std::ranges::range_reference_t<Range>&& element) {
      self.yield_value(static_cast<decltype(element)>(element));
    }
  auto yield_value(elements_of<Range> elements) {
    return delegated_to(each_of<Range>(elements.get()));
  }

  template <class Awaitable>
  std::suspend_never await_transform(Awaitable&&) const noexcept {
    static_assert(sizeof(Awaitable) == 0,
                  "a weft::generator cannot co_await: whoever iterates it is no coroutine. Use weft::async_generator");
    return {};
  }

 private:
  using handle = std::coroutine_handle<generator_promise>;

  handle frame() noexcept { return handle::from_promise(*this); }
  generator_promise& root() noexcept { return root_ == nullptr ? *this : *root_; }

  [[gnu::cold, gnu::noinline]] void destroy_nested() noexcept {
    while (leaf_ != nullptr) std::exchange(leaf_, leaf_->parent_)->frame().destroy();
  }

  struct copied {
    std::remove_cvref_t<Reference> copy;

    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> self) noexcept {
      self.promise().root().value_ = std::addressof(copy);
    }
    void await_resume() const noexcept {}
  };

  struct delegation {
    generator_promise* child;

    bool await_ready() const noexcept { return false; }

    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> self) noexcept {
      generator_promise& parent = self.promise();
      child->parent_ = parent.root_ == nullptr ? nullptr : &parent;
      child->root_ = &parent.root();
      child->root_->leaf_ = child;
    }

    void await_resume() {
      if (!child->failed_) [[likely]]
        return child->frame().destroy();
      const std::exception_ptr failure = child->failure_;
      child->frame().destroy();
      std::rethrow_exception(failure);
    }
  };

  using element =
      std::conditional_t<std::is_rvalue_reference_v<Reference>, std::remove_reference_t<Reference>, Reference>;

  template <class Range>
  static generator<element> each_of(Range range) {
    for (auto&& each : range) co_yield static_cast<decltype(each)>(each);
  }

  template <class Generator>
  static delegation delegated_to(Generator&& nested) noexcept {
    WEFT_EXPECTS(nested.promise_ != nullptr, "elements_of() was given a generator that was moved from, or made empty");
    if (nested.promise_->has_begun()) [[unlikely]]
      fail(nested.promise_->runs() ? "elements_of() was given the generator whose own body this is"
                                   : "elements_of() was given a generator that was begun already");
    return {std::exchange(nested.promise_, nullptr)};
  }

  // Null stands for the root itself: clang could not do without a frame that holds its own address.
  generator_promise* root_ = nullptr;    // in a nested one: whom the consumer iterates
  generator_promise* parent_ = nullptr;  // in a nested one: whose co_yield waits for it
  generator_promise* leaf_ = nullptr;    // in a root: who runs next
  union {
    std::add_pointer_t<Reference> value_;  // in a root
    std::exception_ptr failure_;           // in a nested one, if failed_
  };
  bool failed_ = false;
  bool has_begun_ = false;  // in a root
};

}  // namespace detail

template <class T, class Value>
class generator<T, Value>::promise_type : public promise_base {
 public:
  generator get_return_object() noexcept { return generator{*this}; }
};

/// An iterator of a generator: an input iterator, and move-only, since each value comes once.
template <class T, class Value>
class generator<T, Value>::iterator {
 public:
  using value_type = Value;
  using difference_type = std::ptrdiff_t;

  iterator(iterator&&) = default;
  iterator& operator=(iterator&&) = default;

  T&& operator*() const noexcept { return promise_->value(); }

  iterator& operator++() {
    promise_->expect_value();
    promise_->advance();
    return *this;
  }
  void operator++(int) { ++*this; }

  friend bool operator==(const iterator& self, std::default_sentinel_t) noexcept { return self.promise_->has_ended(); }

 private:
  friend generator;
  explicit iterator(promise_base& promise) noexcept : promise_{&promise} {}

  promise_base* promise_;
};

template <class T, class Value>
generator<T, Value>::~generator() {
  if (promise_ != nullptr) promise_->destroy();
}

template <class T, class Value>
auto generator<T, Value>::begin() -> iterator {
  WEFT_EXPECTS(promise_ != nullptr, "begin() of a generator that was moved from, or made empty");
  if (promise_->has_begun()) [[unlikely]]
    detail::fail(promise_->runs() ? "begin() of a generator by its own body, while that runs"
                                  : "begin() of a generator that was begun already: it is iterated once");
  promise_->begin();
  promise_->advance();
  return iterator{*promise_};
}

}  // namespace weft

template <class T, class Value>
inline constexpr bool std::ranges::enable_view<weft::generator<T, Value>> = true;
