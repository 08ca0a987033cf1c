// What a scope's clock tells it: its deadline, and that its stop takes too long.
#include <weft/overdue.hpp>

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <span>
#include <sstream>
#include <utility>
#include <weft/detail/core/async_stack.hpp>
#include <weft/detail/scope/scope_core.hpp>
#include <weft/stack_pool.hpp>

#include "core/running_probe.hpp"
#include "core/turns.hpp"

namespace weft {
namespace {

constexpr std::size_t most_children = 32;
constexpr std::size_t most_frames = 32;

std::ostream& operator<<(std::ostream& out, const overdue_child& one) {
  const std::string name = one.function.function();
  return out << (one.is_body ? "the body" : "a fork") << (name.empty() ? "" : ", ") << name;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const overdue_scope& what) {
  const auto place = [&](const std::source_location& where) {
    out << " (" << where.file_name() << ':' << where.line() << ')';
  };
  out << "weft: a scope";
  place(what.where);
  out << " has not ended " << std::chrono::duration_cast<std::chrono::milliseconds>(what.waited).count()
      << " ms after it was told to stop: " << what.cause.reason;
  place(what.cause.where);
  out << '\n';
  for (const overdue_child& one : what.children) {
    out << one << ", " << (one.is_shielded ? "shielded, " : "")
        << (one.stack.empty() ? "which does not wait in weft: it runs, is about to, or waits for another library\n"
            : one.runs        ? "which runs here, innermost first:\n"
                              : "which waits here, innermost first:\n")
        << one.stack;
    for (const wait_subject& what_for : one.waits_on) {
      out << "  waits on " << what_for;
      for (const overdue_child& other : what.children)
        if (other.root == what_for.held_by) out << ", which is " << other;
      out << '\n';
    }
  }
  if (what.ignoring > what.children.size()) out << "and " << what.ignoring - what.children.size() << " more forks\n";
  return out;
}

std::string to_string(const overdue_scope& what) {
  std::ostringstream out;
  out.exceptions(std::ios_base::badbit);  // a stream keeps std::bad_alloc to itself otherwise, and gives a part
  out << what;
  return std::move(out).str();
}

namespace {

void print_without_memory() noexcept {
  std::fputs("weft: a scope has not ended long after it was told to stop, and there is no memory to say more\n",
             stderr);
}

}  // namespace

void overdue_handler::print(void*, const overdue_scope& what) noexcept {
  try {
    std::fputs(to_string(what).c_str(), stderr);
  } catch (const std::bad_alloc&) {
    print_without_memory();
  }
}

namespace detail {

// ---- alarms -------------------------------------------------------------------------------------------------------------

void scope_core::alarm::set(clock::time_point when) noexcept {
  clock_ = &of_.its_clock();
  clock_->arm(*this, when);
}

void scope_core::alarm::ring(timer& self) noexcept {
  auto& mine = static_cast<alarm&>(self);
  mine.rung_(mine.of_);  // both may be gone after this line
}

// ---- the deadline -------------------------------------------------------------------------------------------------------

void scope_core::deadline_passed(scope_core& self) noexcept {
  std::unique_lock guard{self.lock_};
  if (self.live_ == 0) return;  // as in request_stop()
  self.past_deadline_ = true;
  record(event_kind::deadline, self.options_.where.line(), as_number(&self),
         as_number(self.options_.where.file_name()));
  ++self.live_;
  self.request_stop_of_live(guard, {.reason = "the deadline of the scope has passed", .where = self.options_.where});
}

void scope_core::look_at_clock(root& self) noexcept {
  if (self.env == nullptr || self.env->deadline == clock::time_point::max()) return;
  for (root* one = &self; one != nullptr; one = one->parent)
    if (one->ends_by(body_ended))
      if (scope_core& scope = *static_cast<body_root*>(one)->of;
          scope.has_deadline_ && scope.env_.deadline <= scope.its_clock().now())
        deadline_passed(scope);
}

// ---- who ignores a stop -------------------------------------------------------------------------------------------------

// The room is there before the lock is taken, under which nothing is allocated. Nobody who has the lock waits for a reader.
overdue_scope scope_core::look_at_children() {
  overdue_scope seen{.where = options_.where,
                     .cause = *source_.cause(),
                     .waited = options_.stop_within,
                     .ignoring = 0,
                     .children = items<overdue_child>{most_children}};
  for (std::size_t i = 0; i != most_children; ++i) {
    seen.children[i].stack = items<async_frame>{most_frames};
    seen.children[i].waits_on = items<wait_subject>{wait_subjects::most};
  }
  prepare_thread_for_stacks();  // those of fibers that are asked for their calls

  const auto add = [&](root& child, const void* function) {
    if (seen.ignoring++ >= most_children) return;
    overdue_child& one = seen.children[seen.ignoring - 1];
    one.is_body = &child == &body_;
    one.is_shielded = child.is_shielded();
    one.function = async_frame{function};
    one.root = static_cast<const sleeper*>(&child);
    const held_wait held{child};
    wait_subjects subjects;
    std::size_t frames = 0;
    if (held) {
      held.tell(subjects);
      call_list calls;  // a list of its own: a walk begins with what is in there
      stack_walk walk{child, calls};
      for (const void* code = walk.next(); code != nullptr && walk.is_in(child); code = walk.next())
        if (frames != most_frames) one.stack[frames++] = async_frame{code};
    }
    std::copy_n(subjects.all, subjects.count, &one.waits_on[0]);
    one.waits_on.cut(subjects.count);
    one.stack.cut(frames);
  };
  {
    const std::lock_guard guard{lock_};
    if (!body_is_over_) add(body_, body_function_);
    for (fork_record* one = running_; one != nullptr; one = one->next_) add(*one, one->function());
    for (fork_record* one = telling_; one != nullptr; one = one->next_) add(*one, one->function());
  }
  seen.children.cut(std::min(seen.ignoring, most_children));
  ask_those_that_run(seen);
  return seen;
}

// Without the lock, for which others would spin until a thread has answered. So a child may end meanwhile, and what its thread says
// is told only of one that is still there.
void scope_core::ask_those_that_run(overdue_scope& seen) {
  const running_probe ask = probe_of_running.load(std::memory_order_relaxed);  // as declared
  if (ask == nullptr) return;
  for (std::size_t k = 0; k != seen.children.size(); ++k) {
    overdue_child& one = seen.children[k];
    if (!one.stack.empty()) continue;
    const void* calls[most_frames];
    const root& child = *static_cast<const root*>(static_cast<const sleeper*>(one.root));
    const std::size_t count = ask(child, std::span<const void*>{calls, most_frames});
    if (count == 0) continue;
    items<async_frame> stack{count};
    for (std::size_t i = 0; i != count; ++i) stack[i] = async_frame{calls[i]};
    const auto is_in = [&](const fork_record* list) {
      for (; list != nullptr; list = list->next_)
        if (list == &child) return list->function() == one.function.address();
      return false;
    };
    const std::lock_guard guard{lock_};
    one.runs = one.is_body ? !body_is_over_ : is_in(running_) || is_in(telling_);
    if (one.runs) one.stack = std::move(stack);
  }
}

// Counts as live meanwhile, as in request_stop().
void scope_core::is_overdue(scope_core& self) noexcept {
  {
    const std::lock_guard guard{self.lock_};
    if (self.live_ == 0) return;
    ++self.live_;
  }
  try {
    const overdue_scope seen = self.look_at_children();
    if (seen.ignoring != 0) self.options_.on_overdue(seen);
  } catch (const std::bad_alloc&) {
    print_without_memory();
  }
  self.count_down();  // the scope may be gone after this line
}

}  // namespace detail
}  // namespace weft
