// A registry of running work by number: work can be found, stopped and awaited where only its number is known.
//
//     w::registry jobs;
//     auto [id, work] = jobs.fork({.limit = 5s}, s, convert(file));
//     ...
//     jobs.request_stop(id);  // from anywhere
//
// Scopes own work; a registry only lists it. An entry is made with the work and removed when the work has ended, and it does
// not keep the work alive. A number is never used twice, so an old one finds nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/clock.hpp>
#include <weft/coroutine.hpp>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/base/lock.hpp>
#include <weft/fiber.hpp>
#include <weft/items.hpp>
#include <weft/stop.hpp>
#include <weft/with.hpp>

namespace weft {

class registry;

/// How work ended.
enum class work_end {
  succeeded,  ///< with a value
  failed,     ///< with an exception
  stopped,
  timed_out,  ///< stopped, because its limit was over
};

/// Options of work in a registry.
struct work_options {
  detail::time_span limit = clock::duration::max();  ///< how long the work may run before it is stopped
  const char* name = nullptr;                        ///< for people; outlives the work
  stack_options stack{};                             ///< the stack of a fiber
};

/// What a registry knows about a piece of work.
struct work_info {
  std::uint64_t id;
  const char* name;     ///< work_options::name
  bool stop_requested;  ///< whether the registry has told it to stop
};

/// A piece of work that was started in a registry.
template <class T>
struct listed {
  std::uint64_t id;
  weft::fork<T> work;
};

/// Options of a registry.
struct registry_options {
  /// Limits go by tick() alone. Otherwise by the clock of whoever starts the work or sets the limit.
  bool pumped = false;
};

namespace detail {

class listed_entry;

/// A piece of work's own hold of its entry: while there is one, it is listed.
class listing {
 public:
  listing(listed_entry& entry) noexcept : entry_{&entry} {}  // NOLINT: by registry
  listing(listing&& other) noexcept : entry_{std::exchange(other.entry_, nullptr)} {}
  ~listing() { end(work_end::stopped); }

  stop_token token() const noexcept;
  std::uint64_t id() const noexcept;

  /// The work has ended so. Once; later ones do nothing.
  void end(work_end how) noexcept;

 private:
  listed_entry* entry_;
};

template <class T, class F>
task<T> run_listed(listing given, F f) {
  listing mine{std::move(given)};  // what is a parameter goes with the frame, which a handle keeps
  without_scope<F> body{std::move(f)};
  auto work = scope_access::run<T, without_scope<F>>({.stop = mine.token()}, nullptr, std::move(body));
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(work);
      mine.end(work_end::succeeded);
    } else {
      T value = co_await std::move(work);
      mine.end(work_end::succeeded);
      co_return static_cast<T&&>(value);
    }
  } catch (...) {  // thrown on
    mine.end(work_end::failed);
    throw;
  }
}

}  // namespace detail

/// Lists running work by number: looks it up, stops it, limits its time, waits for its end.
///
///     w::registry jobs;
///     co_await w::with_scope([&](w::scope& s) -> w::task<> {
///       auto [id, work] = jobs.go({.limit = 5s, .name = "login"}, s, [&] { return log_in(w::await(hello())); });
///       …
///       jobs.request_stop(id);        // from anywhere; false: it has ended
///       co_await jobs.wait(id);       // until then
///     });
///
/// Threads   any thread may call all members; tick(), one thread at a time.
/// Lifetime  outlives the work that is started in it (asserted): declare it before the scope.
/// Cost      an allocation and a scope of its own for each piece of work. With a limit a timer, unless it is pumped.
class registry {
 public:
  /// `options`: whether limits go by the clock or by tick().
  explicit registry(registry_options options = {}) noexcept : options_{options} {}
  registry(const registry&) = delete;
  ~registry();

  /// Starts work in a scope, as scope::fork(), and lists it until it has ended. Its fork may end a moment later.
  ///
  /// Fails   as scope::fork(); nothing is listed then. weft::supervise does not restart work of a registry.
  template <class What, class... Args>
    requires detail::forkable<What, Args...>
  auto fork(const work_options& options, scope& in, What&& what, Args&&... args) {
    if constexpr (sizeof...(Args) == 0 && awaitable<What>) {
      auto work = detail::as_task(std::forward<What>(what));
      return start<await_result<What>>(
          in, options, [work = std::move(work)]() WEFT_COROUTINE_WRAPPER_LAMBDA mutable { return std::move(work); });
    } else {
      return start<detail::forked_t<What, Args...>>(
          in, options,
          [f = detail::callable<What>(std::forward<What>(what)),
           ... args = std::decay_t<Args>(std::forward<Args>(args))]() WEFT_COROUTINE_WRAPPER_LAMBDA mutable {
            return detail::call_in_fork<detail::callable<What>, std::decay_t<Args>...>(std::move(f),
                                                                                       std::move(args)...);
          });
    }
  }
  template <class What, class... Args>
    requires detail::forkable<What, Args...>
  auto fork(scope& in, What&& what, Args&&... args) {
    return fork(work_options{}, in, std::forward<What>(what), std::forward<Args>(args)...);
  }
  template <class... Rest>
  void fork(const work_options&, scope&, detail::refused_work, Rest&&...);
  template <class... Rest>
  void fork(scope&, detail::refused_work, Rest&&...);

  /// The same with a fiber, as scope::go.
  template <class F, class... Args>
    requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
  auto go(const work_options& options, scope& in, F&& f, Args&&... args) {
    return start<detail::kept_result<std::decay_t<F>, std::decay_t<Args>...>>(
        in, options,
        [on = detail::reserved_stack{options.stack, detail::user_of<std::decay_t<F>>(f)},
         f = std::decay_t<F>(std::forward<F>(f)), ... args = std::decay_t<Args>(std::forward<Args>(args))]()
            WEFT_COROUTINE_WRAPPER_LAMBDA mutable {
              return detail::run_in_fiber<std::decay_t<F>, std::decay_t<Args>...>(std::move(on), std::move(f),
                                                                                  std::move(args)...);
            });
  }
  template <class F, class... Args>
    requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
  auto go(scope& in, F&& f, Args&&... args) {
    return go(work_options{}, in, std::forward<F>(f), std::forward<Args>(args)...);
  }

  /// The work with this number; std::nullopt: it has ended, or there was none.
  std::optional<work_info> find(std::uint64_t id) const noexcept;

  /// All running work, in the order in which it was started. Throws std::bad_alloc.
  WEFT_CONTAINERS std::vector<work_info> all() const { return list(); }
  std::size_t size() const noexcept;

  /// Tells the work to stop. False: it has ended, or was told before.
  bool request_stop(std::uint64_t id, stop_cause cause = {}) noexcept;

  /// Replaces its limit: it is stopped `limit` from now; `duration::max()`: never. False: the work has ended. Throws
  /// std::bad_alloc, and changes nothing then.
  bool set_limit(std::uint64_t id, detail::time_span limit);

  /// Waits until the work has ended, and gives how; std::nullopt: it had ended before, or there was none.
  ///
  /// Suspends  while it runs; resumes on its own executor. All effects of the work are visible then.
  /// Cancel    ends the wait; the work runs on.
  task<std::optional<work_end>> wait(std::uint64_t id);

  /// Sets the time of a pumped registry, counted from any moment, stops the work whose limit is over, and gives how many were
  /// stopped. Before the first call the time is 0: call it once before there is work if your time begins elsewhere.
  ///
  ///     while (running) jobs.tick(frame_time()), loop.run_all();
  std::size_t tick(detail::time_span now) noexcept;

 private:
  friend detail::listed_entry;
  friend detail::listing;

  /// Throws std::bad_alloc, and lists nothing then.
  detail::listing enter(const work_options& options);
  bool insert(detail::listed_entry& entry, items<detail::listed_entry*>& larger) noexcept;
  items<work_info> list() const;

  template <class T, class F>
  listed<T> start(scope& in, const work_options& options, F f) {
    detail::listing entry = enter(options);
    const std::uint64_t id = entry.id();
    auto work = detail::run_listed<T, F>(std::move(entry), std::move(f));
    return {id, in.fork(std::move(work))};
  }

  const registry_options options_;
  mutable detail::tiny_lock lock_;
  // All of these under the lock.
  items<detail::listed_entry*> heads_;  // by the low bits of the number; as many as a power of two
  std::size_t size_ = 0;
  std::uint64_t last_id_ = 0;
  clock::duration now_{};                             // of tick()
  clock::duration soonest_ = clock::duration::max();  // no limit ends before, where it is pumped
};

}  // namespace weft
