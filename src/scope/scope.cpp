// The lifetime of a scope: its construction, its body, its end, and how it handles failures. The state of a scope, and who
// may read and write it, is described in scope/scope_core.hpp; forks start, end and stop in scope_start.cpp, scope_end.cpp and
// scope_stop.cpp.
#include <memory>
#include <new>
#include <weft/scope.hpp>

#include "base/debug_note.hpp"
#include "core/end_causes.hpp"
#include "core/run_loop.hpp"
#include "core/walk_gate.hpp"
#include "core/worker.hpp"
#include "scope/fork_end.hpp"

namespace weft::detail {
namespace {

const env& inherited() noexcept { return current_env(); }

}  // namespace

WEFT_LAYOUT_HERE(scope_core, part_of_subject()
                                 .with_children(offsetof(scope_core, running_), offsetof(fork_record, next_),
                                                WEFT_ROOT_IN(fork_record))
                                 .with_children(offsetof(scope_core, telling_), offsetof(fork_record, next_),
                                                WEFT_ROOT_IN(fork_record))
                                 .with_body(offsetof(scope_core, body_), offsetof(scope_core, body_is_over_))
                                 .with_parent(offsetof(scope_core, parent_)));

// For who looks from outside of the process: the functions of forks and of the body, who may be in their first run, and the
// deadline that a scope has set.
struct debug_scope {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // of classes with bases: supported by both compilers
  static constexpr debug_field fields[] = {
      {"fork.function", offsetof(fork_record, function_) - WEFT_ROOT_IN(fork_record)},
      {"scope.body_function", offsetof(scope_core, body_function_)},
      {"scope.has_deadline", offsetof(scope_core, has_deadline_)},
      {"scope.deadline", offsetof(scope_core, env_) + offsetof(weft::env, deadline)},
      {"scope.where", offsetof(scope_core, where_)},
  };
#pragma GCC diagnostic pop
};
extern "C" [[gnu::visibility("hidden"), gnu::used]] constinit const debug_table weft_debug_scope{debug_scope::fields};
WEFT_DEBUG_NOTE("weft_debug_scope");

scope_core::scope_core(const scope_options& options, const weft::env* exactly)
    : waiter{type},
      spare_{&first_},
      parent_{&own_root()},
      env_{exactly != nullptr ? *exactly : inherited()},
      options_{options},
      where_{options.where},
      body_{*this, parent_},
      first_{*this} {
  job::run = body_waits;
  is_limited_ = options.max_children != static_cast<std::size_t>(-1);
  if (is_limited_) {  // then a fork takes a place first, and so never finds a spare record
    spare_ = nullptr;
    free_ = &first_;
  }
  if (options.executor != nullptr) env_.executor = options.executor;
  const clock::time_point outer_deadline = inherited().deadline;
  has_deadline_ = options.deadline < outer_deadline;
  env_.deadline = has_deadline_ ? options.deadline : outer_deadline;
  env_.stop = source_.token();
  if (options.memory != nullptr || has_deadline_ || options.stop.stop_possible() ||
      options.stop_within != clock::duration::max())
    prepare_options();
  if (env_.frames != nullptr && env_.frames->trace() != nullptr && spare_ != nullptr) [[unlikely]] {
    spare_ = nullptr;  // then each fork is one that start_in_another() starts, which records it
    free_ = &first_;
  }
  WEFT_EXPECTS(
      env_.frames == nullptr || options.memory != nullptr || env_.frames->is_shared() ||
          env_.executor == inherited().executor,
      "a scope on another executor below memory that was not declared shared: set .memory_is_shared there, and "
      "give a resource that is");
}

[[gnu::noinline]] void scope_core::prepare_options() {
  by_option_ = ::new (allocate_frame(sizeof(by_option))) by_option{*this};
  if (options_.memory != nullptr) {
    env_.memory = options_.memory;
    env_.memory_is_shared = options_.memory_is_shared || is_per_worker(options_.memory);
    env_.frames = &by_option_->frames.emplace(options_.memory, env_.memory_is_shared);
  }
  if (options_.stop.stop_possible()) by_option_->stop_with_token.emplace(options_.stop, stop_it{this, options_.stop});
}

// By then no other thread uses the scope.
scope_core::~scope_core() {
  if (by_option_ != nullptr) {
    by_option_->stop_with_token.reset();
    by_option_->deadline.cancel();
    by_option_->overdue.cancel();
  }
  WEFT_EXPECTS(held_ == 0, "a fork's handle or view outlived its scope: it must go, or be awaited, inside");
  if (spare_ != nullptr) {
    spare_->next_ = free_;
    free_ = spare_;
  }
  while (free_ != nullptr) {
    fork_record* const one = std::exchange(free_, free_->next_);
    delete let_go_of_env(*one);
    if (one != &first_) free_frame(one, sizeof(fork_record));
  }
  if (last_env_ != nullptr) delete let_go_of_env(last_env_);
  while (later_ != nullptr) delete std::exchange(later_, later_->next);
  if (by_option_ != nullptr) {
    std::destroy_at(by_option_);
    free_frame(by_option_, sizeof(by_option));
  }
  // A program may fork by a reference that it kept for too long. As long as this memory is not used again, it is told so:
  // without a spare record, and with children limited, each fork calls take_place(), which looks at parent_. The asm keeps
  // the compiler from leaving out these stores, which nobody may read after a destructor.
  spare_ = nullptr;
  is_limited_ = true;
  parent_ = nullptr;
  asm volatile("" : : "r"(this) : "memory");
}

void scope_core::adopt_body(std::coroutine_handle<> frame, promise_base& promise,
                            failure_function failure_of) noexcept {
  body_.adopt(frame, promise);
  body_frame_ = frame;
  body_function_ = code_of(frame);
  body_failure_of_ = failure_of;
}

void scope_core::run_body(root& parent) noexcept {
  worker& here = this_worker();
  const executor* outside = parent.env != nullptr ? parent.env->executor : nullptr;
  if (env_.executor != outside) {
    {
      std::lock_guard guard{lock_};  // a stop by the token may be counting, too
      --live_;
    }
    park_parent();
    return body_.schedule();  // the scope may be gone after this line
  }
  parents_start_ = here.starting;
  job::next = here.local;
  here.local = this;  // until the body waits or has run through
  walk_gate::enter(here, *this);
  body_.count_in_like(&parent, here);
  enter(here, &body_);
  here.starting = &body_;
  here.next = body_.top;
}

void scope_core::park_parent() noexcept {
  if (has_deadline_) {
    if (env_.deadline <= its_clock().now())
      deadline_passed(*this);
    else
      by_option_->deadline.set(env_.deadline);
  }
  if (parent_->park_forwarding(*this)) stop_with_parent(*this);
}

// Called by the run loop when the body has suspended.
void scope_core::body_waits(job& self) noexcept {
  auto& mine = static_cast<scope_core&>(self);
  mine.park_parent();
  walk_gate::leave(this_worker(), mine);
  mine.count_down();  // mine may be gone after this line
}

void scope_core::body_ended(root& self, bool stopped) noexcept {
  scope_core& mine = *static_cast<body_root&>(self).of;
  mine.body_was_stopped_ = stopped;
  if (stopped) {
    const stop_cause of_part = cause_of_end(self);
    mine.body_reason_ = of_part.reason;
    ::new (&mine.body_cause_at_) std::source_location{of_part.where};
    mine.request_stop({.reason = "the body of the scope was stopped", .where = mine.where_});
  } else if (const std::exception_ptr* failure = mine.body_failure_of_(mine.body_frame_)) {
    mine.fail(*failure);
  }

  worker& here = this_worker();
  if (here.starting != &mine.body_) {
    leave_root();
    return mine.count_down(true);
  }
  // It ran through: the parent has not parked.
  here.local = mine.job::next;
  {
    std::unique_lock guard{mine.lock_};
    mine.body_is_over_ = true;
    if (--mine.live_ != 1) {
      guard.unlock();
      here.starting = nullptr;
      leave_root();
      mine.park_parent();
      walk_gate::leave(here, mine);
      return mine.count_down();
    }
    mine.live_ = 0;  // so that no walk is counted in any more
  }
  walk_gate::leave(here, mine);
  mine.resume_parent();
}

void scope_core::count_down(bool body) noexcept {
  bool last;
  {
    std::lock_guard guard{lock_};
    if (body) body_is_over_ = true;
    last = --live_ == 0;
  }
  if (last) finish(how());  // else the scope may be gone
}

void scope_core::resume_parent() noexcept {
  worker& here = this_worker();
  root& parent = *parent_;
  const root* const was_starting = parents_start_;
  if (how() == wake_up::stopped)
    end_stopped_by(parent, *this);
  else
    run_next(parent.top, parent);
  here.starting = was_starting;  // the parent has not waited either
}

// Called when all have ended.
void scope_core::why(const waiter& self, cause_list& into) noexcept {
  const auto& mine = static_cast<const scope_core&>(self);
  if (const stop_cause* const told = mine.source_.cause()) into.add(*told);
  if (mine.body_was_stopped_ && mine.body_reason_ != nullptr)
    into.add({.reason = mine.body_reason_, .where = mine.body_cause_at_});
}

// ---- failures -------------------------------------------------------------------------------------------------------

// Decides what to do about the failure of a fork.
on_failure scope_core::judge(const std::exception_ptr& failure) noexcept {
  if (!restarts()) return on_failure::fail;
  const on_failure verdict = options_.on_error(failure);
  if (verdict != on_failure::restart) return verdict;
  const restart_limits& limits = options_.on_error.limits();
  const auto now = std::chrono::steady_clock::now();
  std::lock_guard guard{lock_};
  if (restarts_ == 0 || (limits.within != limits.within.max() && now - restarts_since_ > limits.within)) {
    restarts_ = 0;
    restarts_since_ = now;
  }
  return ++restarts_ > limits.restarts ? on_failure::fail : on_failure::restart;
}

bool scope_core::starts_again(const std::exception_ptr& failure) noexcept {
  const on_failure verdict = judge(failure);
  auto& self = static_cast<fork_record&>(*current_root());
  if (verdict == on_failure::restart) {
    look_at_clock(self);
    if (!source_.stop_requested() && !self.stop_requested()) return true;
    std::lock_guard guard{lock_};
    note_stopped_part();  // without the stop it would have started again
  }
  self.verdict_ = verdict == on_failure::fail ? fork_record::verdict::fail : fork_record::verdict::go_on;
  return false;
}

void scope_core::failed(fork_record& one, const std::exception_ptr& failure) noexcept {
  const auto given = std::exchange(one.verdict_, fork_record::verdict::none);
  if (given == fork_record::verdict::none ? judge(failure) != on_failure::go_on : given == fork_record::verdict::fail)
    fail(failure);
}

void scope_core::fail(const std::exception_ptr& failure) noexcept {
  bool kept = true;
  {
    std::lock_guard guard{lock_};
    const std::exception_ptr& newest = later_ != nullptr ? later_->failure : failure_;
    if (!failure_) {
      failure_ = failure;
    } else if (newest != failure) {  // else it is the failure of a fork, which the body has rethrown
      auto* node = new (std::nothrow) later_failure{failure, later_};
      kept = node != nullptr;
      if (kept) later_ = node;
    }
  }
  if (!kept) lose_error("with_scope", failure);
  if (options_.on_error.what() != error_policy::kind::collect_all)
    request_stop(
        {.reason = "a fork of the scope, or its body, failed", .where = where_, .thrown_in = thrown_in(failure)});
}

// Throws all failures as one list, or the first one: where that was not asked for, or there is no memory for a list.
void scope_core::throw_failure() {
  if (!failure_) return;
  const bool throws_all = options_.on_error.what() == error_policy::kind::collect_all;
  if (options_.errors != nullptr || throws_all) {
    error_list list;
    try {
      std::size_t count = 1;
      for (later_failure* one = later_; one != nullptr; one = one->next) ++count;
      items<std::exception_ptr> all{count};
      for (later_failure* one = later_; one != nullptr; one = one->next) all[--count] = one->failure;  // newest first
      all[0] = failure_;
      list = error_list{std::move(all)};
      if (options_.errors != nullptr) *options_.errors = list;
    } catch (const std::bad_alloc&) {
      for (later_failure* one = later_; one != nullptr; one = one->next) lose_error("with_scope", one->failure);
      rethrow(std::move(failure_));
    }
    if (throws_all) throw list;
  }
  rethrow(std::move(failure_));
}

}  // namespace weft::detail
