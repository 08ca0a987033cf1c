// Nothing that is read is trusted: a process that goes on while something is read late, a heap that was overwritten and a core
// file that was cut off must not lead anywhere without end. So each address is visited once, and all lists have a most.
//
// Long because roots, their waits, the cases of a select, their frames and what runs are one walk.
#include "tasks.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_set>

#include "fields.hpp"
#include "stamps.hpp"
#include "target.hpp"
#include "thread_calls.hpp"
#include "unwind.hpp"

namespace weft_tool {

const char* to_string(task_kind kind) noexcept {
  constexpr const char* names[] = {"task", "thread", "fork", "fiber", "body", "child", "shared_task"};
  return names[static_cast<std::size_t>(kind)];
}
const char* to_string(task_state state) noexcept {
  constexpr const char* names[] = {"running", "ready", "waiting"};
  return names[static_cast<std::size_t>(state)];
}

std::optional<std::size_t> tasks_seen::find(address root) const {
  const auto found = places.find(root);
  return found != places.end() ? std::optional{found->second} : std::nullopt;
}

namespace {

constexpr std::size_t most_tasks = std::size_t{1} << 26, most_frames_passed = 1 << 20, longest_path = 1024;

// A wait's layout, read once a type.
struct wait_kind {
  std::string name;
  bool is_known = false, has_children = false, has_cases = false;
  bool stored = false, itself = false, by_subject = false, by_word = false;
  std::uint16_t subject_at = 0, subject_plus = 0, word_at = 0, marks = 0, word2_at = 0, unless_at = 0, unless_is = 0;
  struct list {
    std::uint16_t first_at, next_at, root_at;
  };
  std::vector<list> lists;
  std::uint16_t body_at = 0, body_over_at = 0, parent_at = 0, decides_at = 0;
};

// The library's two functions that are outermost on a fiber's stack.
constexpr std::size_t calls_of_library = 2;

// Calls of a thread, from the innermost outwards.
struct running_calls {
  std::span<const native_call> left;
  std::span<const address> coroutines;  // functions of the root that runs

  bool is_coroutine() const {
    const address function = left.front().function;
    return function != 0 && std::ranges::find(coroutines, function) != coroutines.end();
  }
  address take() {
    const address code = left.front().code;
    left = left.subspan(1);
    return code;
  }
};

class walk {
 public:
  walk(const target& of, const fields& with, const look_options& how, tasks_seen& into)
      : in_{of}, at_{of.memory()}, f_{with}, how_{how}, into_{into}, unwinder_{of} {}

  void run() {
    look_at_workers();
    const auto lists = f_["tops"], count = f_["tops.count"], bytes = f_["tops.bytes"];
    for (std::uint64_t i = 0; i != std::min<std::uint64_t>(count, 4096); ++i)
      for (address one = at_.word(lists + i * bytes + top_first_); one != 0 && !is_full();
           one = at_.word(one + top_next_)) {
        const auto kind = at_.get<std::uint8_t>(one + top_kind_);
        if (!kind || !enter(one, none, kind_of(*kind), at_.word(one + top_function_))) break;
        go_down();
      }
    look_at_openings();
    for (std::size_t i = first_worker_; i != into_.workers.size(); ++i) look_at_running(static_cast<int>(i));
  }

 private:
  bool is_full() const noexcept { return into_.tasks.size() >= most_tasks; }

  static task_kind kind_of(std::uint8_t root_kind) noexcept {
    constexpr task_kind kinds[] = {task_kind::task, task_kind::thread, task_kind::shared_task,
                                   task_kind::fork, task_kind::body,   task_kind::child};
    return root_kind < std::size(kinds) ? kinds[root_kind] : task_kind::task;
  }

  // ---- workers

  void look_at_workers() {
    for (const address one : f_.workers(at_)) {
      workers_.push_back(one);
      worker_seen seen;
      seen.at = one;
      seen.thread = static_cast<int>(at_.word<std::uint32_t>(one + f_["worker.thread"]));
      if (seen.thread == 0) continue;  // it has ended
      seen.runs = at_.word(one + f_["worker.current"]);
      if (seen.runs != 0 && f_.has("worker.turn_may_end") && at_.word(one + f_["worker.turn_of"]) == seen.runs &&
          at_.word(one + f_["worker.turn_may_end"]) == 0)
        seen.since = times_.at(at_.word(one + f_["worker.turn_began"]));
      if (const address seat = at_.word(one + f_["worker.of_pool"]); seat != 0 && f_.has("seat.home")) {
        const address home = at_.word(seat + f_["seat.home"]);
        auto its = std::ranges::find(into_.pools, home, &pool_seen::executor);
        if (its == into_.pools.end()) {
          into_.pools.push_back({home, 0, at_.word(at_.word(seat + f_["seat.pool"]) + f_["pool.waiting"])});
          its = into_.pools.end() - 1;
        }
        ++its->workers;
        seen.pool = static_cast<int>(its - into_.pools.begin());
        seen.index = at_.word<std::uint32_t>(seat + f_["seat.index"]);
        const auto number = [&](const char* name) { return at_.word(seat + f_[name]); };
        const std::uint64_t top = number("seat.forks_top") / std::max<std::uint64_t>(f_["seat.forks_unit"], 1),
                            bottom = number("seat.forks_bottom");
        seen.queued = number("seat.line_size") + (number("seat.line_next") != 0 ? 1 : 0) + number("seat.forks_stored") +
                      (bottom > top ? bottom - top : 0) + number("seat.kept") + number("seat.are_brought");
        seen.jobs = number("seat.jobs");
        seen.steals = number("seat.steals");
        seen.sleeps = number("seat.sleeps");
        seen.asleep = static_cast<std::int64_t>(number("seat.asleep"));
      }
      into_.workers.push_back(seen);
    }
  }

  // ---- roots

  // `scope`: what it is a part of, where that is one. False: it is none, or was entered before.
  bool enter(address root, std::size_t parent, task_kind kind, address function, address scope = 0) {
    if (is_full()) return into_.is_complete = false;
    if (at_.word(root + wake_) != woken_ || at_.word(root + run_) != run_job_) return into_.is_complete = false;
    if (!places_.emplace(root, into_.tasks.size()).second) return false;
    const auto top = at_.word(root + top_);
    task_seen& one = into_.tasks.emplace_back();
    const std::size_t index = into_.tasks.size() - 1;
    one.at = root;
    one.parent = parent;
    one.kind = kind;
    one.function = function & ~(std::uint64_t{1} << 63);  // a mark of the library's
    const std::uint64_t word = at_.word(root + word_), state = word & state_mask_;
    one.ticket = word & ticket_mask_;
    one.is_shielded = (word & shield_bit_) != 0;
    one.stop_requested = (word & stop_bit_) != 0 || (parent != none && into_.tasks[parent].stop_requested);
    if (const address env = at_.word(root + env_); env != 0) {
      one.deadline = at_.get<std::int64_t>(env + deadline_).value_or(one.deadline);
      look_at_who_set_deadline(one, scope);
      look_at_stop(one, at_.word(env + env_stop_));
      const bool is_traced =
          at_.word(env + env_frames_) != 0 && (at_.word<std::uint8_t>(root + before_wait_) & is_traced_) != 0;
      if (is_traced && state != state_running_) one.since = times_.at(at_.word(root + traced_since_));
    }
    if (state == state_running_) return true;
    one.state = task_state::waiting;
    if (!list_frames(one, top)) into_.is_complete = false;
    const address waiter = at_.word(root + current_);
    if (waiter == 0 || at_.word(waiter + sleeper_) != root) {
      into_.is_complete = false;  // memory of another moment
      return true;
    }
    next_.push_back({waiter, index, false});
    return true;
  }

  void look_at_stop(task_seen& one, address source) const {
    if (source == 0 || (at_.word<std::uint32_t>(source + source_state_) & source_requested_) == 0) return;
    one.stop_requested = true;
    const address reason = at_.word(source + source_reason_);
    if (reason != 0) one.cause = {printable(at_.text(reason)), place_at(source + source_where_)};
  }

  // What a std::source_location names.
  place_seen place_at(address location) const {
    const address where = at_.word(location);
    if (where == 0) return {};
    const auto text = [&](std::uint64_t offset) {
      const address its = at_.word(where + offset);
      return its != 0 ? printable(at_.text(its, longest_path)) : std::string{};
    };
    return {text(where_function_), text(where_file_), at_.word<std::uint32_t>(where + where_line_)};
  }

  // Of the scope that it is part of, or of one around that, from which both have it.
  void look_at_who_set_deadline(task_seen& one, address scope) const {
    if (one.deadline == task_seen::max_deadline) return;
    if (scope != 0 && at_.word<std::uint8_t>(scope + scope_has_deadline_) != 0 &&
        at_.get<std::int64_t>(scope + scope_deadline_) == one.deadline)
      one.deadline_set_at = place_at(scope + scope_where_);
    else if (one.parent != none && into_.tasks[one.parent].deadline == one.deadline)
      one.deadline_set_at = into_.tasks[one.parent].deadline_set_at;
  }

  struct level {
    address waiter;
    std::size_t parent;
    bool is_opening;
  };

  // What the waits that were found are for, and their children, and so on.
  void go_down() {
    while (!next_.empty()) {
      const level now = next_.back();
      next_.pop_back();
      look_at_wait(now);
    }
  }

  address subject_of(address waiter, const wait_kind& kind) const {
    return kind.itself ? waiter : kind.stored ? stored(waiter, kind) : 0;
  }

  task_wait wait_in(address waiter, const wait_kind& kind) const {
    const address subject = subject_of(waiter, kind);
    task_wait what{kind.name, subject, 0};
    if (kind.by_subject) what.held_by = subject;
    if (kind.by_word && subject != 0) {
      std::uint64_t word = at_.word(subject + kind.word_at) & ~std::uint64_t{kind.marks};
      if (word == 0 && kind.word2_at != nowhere_ && at_.word<std::uint8_t>(waiter + kind.unless_at) != kind.unless_is)
        word = at_.word(subject + kind.word2_at);
      if (word > somebody_) what.held_by = word;
    }
    return what;
  }

  // ---- the cases of a select

  static constexpr std::size_t most_cases = 16;  // as the library tells
  static constexpr std::uint64_t most_places = 4096;

  void list_cases(address waiter, const wait_kind& kind, std::vector<task_wait>& into) {
    address place = at_.word(waiter + kind.subject_at);
    const std::uint64_t count = std::min<std::uint64_t>(at_.word(waiter + kind.word_at), most_places);
    for (std::uint64_t i = 0; i != count && into.size() != most_cases; ++i, place += f_["select_place.bytes"])
      look_at_case(at_.word(place + f_["select_place.one"]), at_.word(place + f_["select_place.seen"]), into);
  }

  void look_at_case(address one, address layout, std::vector<task_wait>& into) {
    constexpr int deepest = 4;  // a case that is in another one
    for (int depth = 0; one != 0 && layout != 0 && depth != deepest; ++depth) {
      const auto number = [&](const char* name) { return at_.word<std::uint16_t>(layout + f_[name]); };
      if (f_.has("case.is_none")) {
        const auto there = number("case.there_at");
        if (number("case.is_none") != 0 || (there != nowhere_ && at_.word<std::uint8_t>(one + there) == 0)) return;
      }
      if (const address name = at_.word(layout + f_["case.name"]); name != 0) {
        task_wait what{printable(at_.text(name, 80)), 0, 0};
        if (const auto at = number("case.subject_at"); at != nowhere_) {
          what.at = at_.word(one + at) & ~std::uint64_t{number("case.marks")};
          if (const auto through = number("case.through_at"); through != nowhere_)
            what.at = at_.word(what.at + through);
          if (what.at != 0) what.at += number("case.subject_plus");
          if (number("case.is_held_by_it") != 0) what.held_by = what.at;
        }
        into.push_back(std::move(what));
        return;
      }
      if (const auto at = number("case.waiter_at"); at != nowhere_) {
        into.push_back(wait_in(one + at, kind_at(at_.word(one + number("case.type_at")))));
        return;
      }
      if (const auto at = number("case.inner_at"); at != nowhere_) {
        one += at;
        layout = at_.word(layout + f_["case.inner"]);
      } else if (const auto pointer = number("case.pointer_at"); pointer != nowhere_) {
        one = at_.word(one + pointer);
        layout = at_.word(one + number("case.layout_at"));
      } else {
        break;
      }
    }
    into.push_back({"select", 0, 0});
  }

  void look_at_wait(const level& now) {
    const wait_kind kind = kind_at(at_.word(now.waiter + type_));  // a copy: others are read meanwhile
    const address subject = subject_of(now.waiter, kind);
    task_seen& one = into_.tasks[now.parent];
    // Of a root that opens a wait while it runs, as the library tells it: it waits.
    if (one.state != task_state::waiting) one.state = task_state::waiting;
    if (kind.has_cases) list_cases(now.waiter, kind, one.waits);
    if (one.waits.empty()) one.waits.push_back(wait_in(now.waiter, kind));
    if (!kind.has_children || subject == 0) return;
    one.has_children = true;
    if (kind.decides_at != nowhere_)
      if (const address deciding = at_.word(subject + kind.decides_at); deciding != 0) {
        one.decides = true;
        one.in_time = at_.word(deciding + about_to_wait_) != 0;
      }
    if (kind.body_at != nowhere_ && at_.word<std::uint8_t>(subject + kind.body_over_at) == 0)
      enter_child(subject + kind.body_at, now.parent, task_kind::body,
                  body_function_ != none ? at_.word(subject + body_function_) : 0, subject);
    const task_kind as = kind.body_at != nowhere_ ? task_kind::fork : task_kind::child;
    for (const wait_kind::list& list : kind.lists) {
      std::unordered_set<address> seen;  // its records: it must not lead back into itself
      bool is_starting = now.is_opening;
      for (address record = at_.word(subject + list.first_at); record != 0 && !is_full();
           record = at_.word(record + list.next_at), is_starting = false) {
        if (!seen.insert(record).second) {
          into_.is_complete = false;
          break;
        }
        const address root = record + list.root_at;
        const address function = as == task_kind::fork && fork_function_ != none ? at_.word(root + fork_function_) : 0;
        enter_child(root, now.parent, as, function, as == task_kind::fork && scope_where_ != none ? subject : 0,
                    is_starting);
      }
    }
  }

  void enter_child(address root, std::size_t parent, task_kind kind, address function, address scope,
                   bool is_starting = false) {
    if (places_.contains(root)) return;
    // A child of a join or group that has ended stays in the list of those until all have.
    if (kind == task_kind::child && !is_starting && at_.word(root + top_) == root + end_) return;
    enter(root, parent, kind, function, scope);
  }

  std::size_t stored(address waiter, const wait_kind& kind) const {
    const address it = at_.word(waiter + kind.subject_at);
    return it != 0 ? it + kind.subject_plus : 0;
  }

  const wait_kind& kind_at(address type) {
    const auto [known, is_new] = kinds_.try_emplace(type);
    wait_kind& kind = known->second;
    if (!is_new) return kind;
    kind.name = printable(at_.text(at_.word(type + f_["wait_type.name"]), 80));
    const address layout = at_.word(type + f_["wait_type.layout"]);
    std::vector<std::byte> bytes(f_["layout.bytes"] < 4096 ? f_["layout.bytes"] : 0);
    if (layout == 0 || at_.read(layout, bytes.data(), bytes.size()) != bytes.size()) return kind;
    const auto number = [&](std::uint64_t at) {
      std::uint16_t value = 0;
      if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
      return value;
    };
    const auto byte = [&](const char* name) -> std::uint64_t { return number(f_[name]) & 0xff; };
    kind.is_known = true;
    kind.stored = byte("layout.subject") == f_["place.stored"];
    kind.itself = byte("layout.subject") == f_["place.itself"];
    kind.has_cases = byte("layout.subject") == f_["place.cases"] && f_.has("select_place.bytes");
    kind.by_subject = byte("layout.held_by") == f_["holder.subject"];
    kind.by_word = byte("layout.held_by") == f_["holder.word"];
    kind.subject_at = number(f_["layout.subject_at"]);
    kind.subject_plus = number(f_["layout.subject_plus"]);
    kind.word_at = number(f_["layout.word_at"]);
    kind.marks = number(f_["layout.marks"]);
    kind.word2_at = number(f_["layout.word2_at"]);
    kind.unless_at = number(f_["layout.unless_at"]);
    kind.unless_is = number(f_["layout.unless_is"]);
    kind.body_at = number(f_["layout.body_at"]);
    kind.body_over_at = number(f_["layout.body_over_at"]);
    kind.parent_at = number(f_["layout.parent_at"]);
    kind.decides_at = number(f_["layout.decides_at"]);
    for (std::uint64_t i = 0; i != std::min<std::uint64_t>(f_["layout.lists"], 8); ++i) {
      const std::uint64_t list = f_["layout.children"] + i * f_["layout.list_bytes"];
      if (number(list) != nowhere_) kind.lists.push_back({number(list), number(list + 2), number(list + 4)});
    }
    kind.has_children = !kind.lists.empty();
    return kind;
  }

  // What a root stands below in the tree: of a fork, the root that waits for its scope.
  address above_of(address root) const {
    const address above = at_.word(root + parent_);
    return above != 0 && at_.word<std::uint8_t>(root + is_fork_) != 0 ? at_.word(above + parent_) : above;
  }

  // A fork in its first run is in no list, nor are those above it that are in theirs.
  void enter_with_those_above(address root) {
    std::vector<address> unseen;
    for (address up = root; up != 0 && !places_.contains(up) && unseen.size() != 4096; up = above_of(up))
      unseen.push_back(up);
    for (std::size_t i = unseen.size(); i-- != 0;) {
      const address up = unseen[i], above = above_of(up);
      const auto place = places_.find(above);
      if (above != 0 && place == places_.end()) into_.is_complete = false;
      enter(up, place != places_.end() ? place->second : none,
            at_.word<std::uint8_t>(up + is_fork_) != 0 ? task_kind::fork
            : above == 0                               ? task_kind::task
                                                       : task_kind::child,
            0);
    }
  }

  // ---- children that are being started, whose parents have not parked

  void look_at_openings() {
    struct opening {
      address waiter, parent;
    };
    std::vector<opening> all;
    for (const address worker : workers_) {
      std::size_t count = 0;
      for (address one = at_.word(worker + f_["worker.opening"]); one != 0 && ++count != 4096;
           one = at_.word(one + waiter_prev_)) {
        const wait_kind& kind = kind_at(at_.word(one + type_));
        const address subject = kind.itself ? one : kind.stored ? stored(one, kind) : 0;
        if (subject != 0 && kind.parent_at != nowhere_) all.push_back({one, at_.word(subject + kind.parent_at)});
      }
    }
    while (!all.empty()) {
      const opening one = all.back();
      all.pop_back();
      enter_with_those_above(one.parent);
      const auto parent = places_.find(one.parent);
      if (parent == places_.end()) continue;
      if (into_.tasks[parent->second].state != task_state::waiting) next_.push_back({one.waiter, parent->second, true});
      go_down();
    }
  }

  // ---- what runs

  void look_at_running(int number) {
    const worker_seen& its = into_.workers[static_cast<std::size_t>(number)];
    if (its.runs == 0) return;
    if (!places_.contains(its.runs)) {
      if ((at_.word(its.runs + word_) & state_mask_) != state_running_) return;  // it has just ended
      enter_with_those_above(its.runs);
      go_down();
    }
    const auto place = places_.find(its.runs);
    if (place == places_.end() || into_.tasks[place->second].state == task_state::waiting) return;
    task_seen& one = into_.tasks[place->second];
    one.state = task_state::running;
    one.worker = number;
    one.since = its.since;
    const auto thread = std::ranges::find(in_.threads(), its.thread, &thread_seen::id);
    native_calls calls;
    if (how_.stacks && thread != in_.threads().end()) calls = calls_from(unwinder_, thread->regs, begin_of_fibers());
    list_running(one, calls);
  }

  // The calls of its thread, up to the function of the innermost coroutine, and then those that await that one. A thread may
  // stand where `top` is a frame that was just destroyed: of what is read from there nothing is told unless it leads to the
  // root's end.
  void list_running(task_seen& one, const native_calls& calls) {
    task_seen frames;
    frames.at = one.at;
    const address top = at_.word(one.at + top_);
    const bool is_whole = list_frames(frames, top);
    running_calls own{calls.all, {}};
    if (calls.is_of_fiber) own.left = own.left.first(own.left.size() - std::min(own.left.size(), calls_of_library));
    if (is_whole) own.coroutines = frames.stack;
    while (!own.left.empty() && !own.is_coroutine()) add_call(one, own.take());
    if (!is_whole) return;
    running_ = &own;
    list_frames(one, top);
    running_ = nullptr;
  }

  std::optional<code_range> begin_of_fibers() const {
    if (!f_.has("context.outermost")) return std::nullopt;
    return code_range{f_["context.outermost"], f_["context.outermost_end"]};
  }

  // ---- frames

  // False: they do not lead to the root's end.
  bool list_frames(task_seen& one, address top) {
    std::size_t passed = 0;
    address outermost = 0;
    bool is_fiber = false, is_whole = false;
    // A callee that has ended, and is not destroyed yet.
    while (top != 0 && top != one.at + end_ && at_.word(top + resume_) == 0 && ++passed != most_frames_passed)
      top = at_.word(top + continuation_);
    address frame = top;
    for (; frame != 0 && frame != one.at + end_ && ++passed < most_frames_passed;) {
      std::array<std::uint64_t, 2> code{};
      if (at_.read(frame, code.data(), sizeof code) != sizeof code) break;
      const address resume = code[0], destroy = code[1];
      if (destroy == arrive_stopped_) {
        if (resume == go_on_ && go_on_ != 0) {
          is_fiber = true;
          if (how_.stacks) list_calls(frame, one);
        } else if (resume == returned_) {
          is_whole = true;  // the end of another root
          break;
        }
      } else {
        outermost = resume != 0 ? resume : destroy;
        if (how_.stacks && one.stack.size() < how_.most_frames) {
          one.stack.push_back(outermost);
          one.frames.push_back(frame);
        }
      }
      frame = at_.word(frame + continuation_);
    }
    if (one.function == 0) one.function = outermost;
    if (is_fiber) one.kind = task_kind::fiber;
    return is_whole || frame == one.at + end_;
  }

  void add_call(task_seen& one, address code) const {
    if (one.stack.size() >= how_.most_frames) return;
    one.stack.push_back(code);
    one.frames.push_back(0);
  }

  // The plain functions that a fiber is in. Of one that waits: from where its stack ended when it began to wait, to its outermost
  // ones, which are the library's. One that runs a coroutine is on its thread's stack, behind that coroutine's function.
  void list_calls(address frame, task_seen& one) {
    const address fiber = frame - f_["fiber.frame"], context = fiber + f_["fiber.context"];
    if (at_.word<std::uint16_t>(context + f_["context.mark"]) != f_["context.mark_waiting"]) {
      while (running_ != nullptr && !running_->left.empty()) {
        const bool is_plain = !running_->is_coroutine();
        const address code = running_->take();
        if (is_plain) add_call(one, code);
      }
      return;
    }
    registers regs;
    regs.pc = at_.word(context + f_["context.resume_at"]);
    set_frame(regs, at_.word(context + f_["context.stack_pointer"]), at_.word(context + f_["context.frame_pointer"]),
              at_.word(context + f_["context.base"]));
    const address waits_at = at_.word(fiber + f_["fiber.waits_at"]);
    const native_calls calls = calls_from(unwinder_, regs, begin_of_fibers());
    const std::size_t own = calls.all.size() - (calls.is_of_fiber ? std::min(calls.all.size(), calls_of_library) : 0);
    std::size_t first = 0;
    while (first != own && calls.all[first].stack < waits_at) ++first;
    for (std::size_t i = first; i != own; ++i) add_call(one, calls.all[i].code);
  }

  const target& in_;
  const memory& at_;
  const fields& f_;
  const look_options how_;
  tasks_seen& into_;
  unwinder unwinder_;
  const std::size_t first_worker_ = into_.workers.size();

  // What is read of each root.
  const std::uint64_t word_ = f_["sleeper.word"], current_ = f_["sleeper.current"], wake_ = f_["sleeper.wake"],
                      state_mask_ = f_["state.mask"], state_running_ = f_["state.running"],
                      stop_bit_ = f_["state.stop_bit"], shield_bit_ = f_["state.shield_bit"],
                      ticket_mask_ = f_["state.ticket_mask"], sleeper_ = f_["waiter.sleeper"],
                      type_ = f_["waiter.type"], waiter_prev_ = f_["waiter.prev"], nowhere_ = f_["layout.nowhere"],
                      somebody_ = f_["holder.somebody"], run_ = f_["root.run"], top_ = f_["root.top"],
                      env_ = f_["root.env"], parent_ = f_["root.parent"], is_fork_ = f_["root.is_fork"],
                      end_ = f_["root.end"], woken_ = f_["root.woken"], run_job_ = f_["root.run_job"],
                      returned_ = f_["root.returned"], resume_ = f_["frame.resume"],
                      continuation_ = f_["promise.continuation"], arrive_stopped_ = f_["boundary.arrive_stopped"],
                      deadline_ = f_["env.deadline"], env_stop_ = f_["env.stop"], env_frames_ = f_["env.frames"],
                      before_wait_ = f_["root.before_wait"], is_traced_ = f_["root.is_traced"],
                      traced_since_ = f_["root.traced_since"], source_state_ = f_["stop_source.state"],
                      source_requested_ = f_["stop_source.requested"], source_reason_ = f_["stop_source.reason"],
                      source_where_ = f_["stop_source.where"], where_file_ = f_["source_location.file"],
                      where_function_ = f_["source_location.function"], where_line_ = f_["source_location.line"],
                      go_on_ = f_.has("fiber.go_on") ? f_["fiber.go_on"] : 0,
                      about_to_wait_ = f_.has("group.about_to_wait") ? f_["group.about_to_wait"] : 0,
                      top_first_ = f_["tops.first"], top_next_ = f_["top_root.next"], top_kind_ = f_["top_root.kind"],
                      top_function_ = f_["top_root.function"], fork_function_ = of_scope("fork.function"),
                      body_function_ = of_scope("scope.body_function"),
                      scope_has_deadline_ = of_scope("scope.has_deadline"),
                      scope_deadline_ = of_scope("scope.deadline"), scope_where_ = of_scope("scope.where");
  std::uint64_t of_scope(const char* field) const { return f_.has(field) ? f_[field] : none; }

  const stamp_times times_{at_, f_};
  std::vector<address> workers_;
  running_calls* running_ = nullptr;  // while frames of such a root are listed
  std::unordered_map<address, std::size_t>& places_ = into_.places;
  std::unordered_map<address, wait_kind> kinds_;
  std::vector<level> next_;
};

}  // namespace

tasks_seen look_at(const target& in, const look_options& how) {
  tasks_seen all;
  for (const fields& with : fields_of(in)) walk{in, with, how, all}.run();
  find_circles(all);
  return all;
}

}  // namespace weft_tool
