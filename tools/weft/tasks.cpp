// Nothing that is read is trusted: a process that goes on while something is read late, a heap that was overwritten and a core
// file that was cut off must not lead anywhere without end. So each address is visited once, and all lists have a most.
#include "tasks.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <unordered_set>

#include "fields.hpp"
#include "target.hpp"
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

constexpr std::size_t most_tasks = std::size_t{1} << 26, most_frames_passed = 1 << 20;

// A wait's layout, read once a type.
struct wait_kind {
  std::string name;
  bool is_known = false, has_children = false;
  bool stored = false, itself = false, by_subject = false, by_word = false;
  std::uint16_t subject_at = 0, subject_plus = 0, word_at = 0, marks = 0, word2_at = 0, unless_at = 0, unless_is = 0;
  struct list {
    std::uint16_t first_at, next_at, root_at;
  };
  std::vector<list> lists;
  std::uint16_t body_at = 0, body_over_at = 0, parent_at = 0, decides_at = 0;
};

class walk {
 public:
  walk(const target& of, const fields& with, const look_options& how, tasks_seen& into)
      : at_{of.memory()}, f_{with}, how_{how}, into_{into}, unwinder_{of} {}

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
    for (std::size_t i = first_; i != into_.tasks.size(); ++i) {
      task_seen& one = into_.tasks[i];
      const auto runs = runs_.find(one.at);
      if (one.state == task_state::waiting || runs == runs_.end()) continue;
      one.state = task_state::running;
      one.worker = runs->second;
    }
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
      if (seen.runs != 0) runs_.emplace(seen.runs, static_cast<int>(into_.workers.size()));
      into_.workers.push_back(seen);
    }
  }

  // ---- roots

  // False: it is none, or was entered before.
  bool enter(address root, std::size_t parent, task_kind kind, address function) {
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
    if (const address env = at_.word(root + env_); env != 0)
      one.deadline = at_.get<std::int64_t>(env + deadline_).value_or(one.deadline);
    if (state == state_running_) return true;
    one.state = task_state::waiting;
    list_frames(one, top);
    const address waiter = at_.word(root + current_);
    if (waiter == 0 || at_.word(waiter + sleeper_) != root) {
      into_.is_complete = false;  // memory of another moment
      return true;
    }
    next_.push_back({waiter, index, false});
    return true;
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

  void look_at_wait(const level& now) {
    const wait_kind& kind = kind_at(at_.word(now.waiter + type_));
    std::vector<task_wait> waits;
    const address subject = kind.itself ? now.waiter : kind.stored ? stored(now.waiter, kind) : 0;
    task_wait what{kind.name, subject, 0};
    if (kind.by_subject) what.held_by = subject;
    if (kind.by_word && subject != 0) {
      std::uint64_t word = at_.word(subject + kind.word_at) & ~std::uint64_t{kind.marks};
      if (word == 0 && kind.word2_at != nowhere_ &&
          at_.word<std::uint8_t>(now.waiter + kind.unless_at) != kind.unless_is)
        word = at_.word(subject + kind.word2_at);
      if (word > somebody_) what.held_by = word;
    }
    task_seen& one = into_.tasks[now.parent];
    // Of a root that opens a wait while it runs, as the library tells it: it waits.
    if (one.state != task_state::waiting) one.state = task_state::waiting;
    one.waits.push_back(std::move(what));
    if (!kind.has_children || subject == 0) return;
    one.has_children = true;
    if (kind.decides_at != nowhere_)
      if (const address deciding = at_.word(subject + kind.decides_at); deciding != 0) {
        one.decides = true;
        one.in_time = at_.word(deciding + about_to_wait_) != 0;
      }
    if (kind.body_at != nowhere_ && at_.word<std::uint8_t>(subject + kind.body_over_at) == 0)
      enter_child(subject + kind.body_at, now.parent, task_kind::body,
                  body_function_ != none ? at_.word(subject + body_function_) : 0);
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
        enter_child(root, now.parent, as, function, is_starting);
      }
    }
  }

  void enter_child(address root, std::size_t parent, task_kind kind, address function, bool is_starting = false) {
    if (places_.contains(root)) return;
    // A child of a join or group that has ended stays in the list of those until all have.
    if (kind == task_kind::child && !is_starting && at_.word(root + top_) == root + end_) return;
    enter(root, parent, kind, function);
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
      // Its parent may be a fork in its first run, which is in no list.
      std::vector<address> unseen;
      for (address up = one.parent; up != 0 && !places_.contains(up) && unseen.size() != 4096;
           up = at_.word(up + parent_))
        unseen.push_back(up);
      for (std::size_t i = unseen.size(); i-- != 0;) {
        const address up = unseen[i], above = at_.word(up + parent_);
        const bool is_fork = at_.word<std::uint8_t>(up + is_fork_) != 0;
        const bool is_body = i != 0 && at_.word<std::uint8_t>(unseen[i - 1] + is_fork_) != 0;
        const auto place = places_.find(above);
        if (above != 0 && place == places_.end()) into_.is_complete = false;
        enter(up, place != places_.end() ? place->second : none,
              is_fork      ? task_kind::fork
              : is_body    ? task_kind::body
              : above == 0 ? task_kind::task
                           : task_kind::child,
              0);
      }
      const auto parent = places_.find(one.parent);
      if (parent == places_.end()) continue;
      if (into_.tasks[parent->second].state != task_state::waiting) next_.push_back({one.waiter, parent->second, true});
      go_down();
    }
  }

  // ---- frames

  void list_frames(task_seen& one, address top) {
    std::size_t passed = 0;
    address outermost = 0;
    bool is_fiber = false;
    // A callee that has ended, and is not destroyed yet.
    while (top != 0 && top != one.at + end_ && at_.word(top + resume_) == 0 && ++passed != most_frames_passed)
      top = at_.word(top + continuation_);
    for (address frame = top; frame != 0 && frame != one.at + end_ && ++passed < most_frames_passed;) {
      std::array<std::uint64_t, 2> code{};
      if (at_.read(frame, code.data(), sizeof code) != sizeof code) {
        into_.is_complete = false;
        break;
      }
      const address resume = code[0], destroy = code[1];
      if (destroy == arrive_stopped_) {
        if (resume == go_on_ && go_on_ != 0) {
          is_fiber = true;
          if (how_.stacks) list_calls(frame, one);
        } else if (resume == returned_) {
          break;  // the end of another root
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
  }

  // The plain functions that a fiber is in: from where its stack ended when it began to wait, to its outermost ones, which are
  // the library's.
  void list_calls(address frame, task_seen& one) {
    const address fiber = frame - f_["fiber.frame"], context = fiber + f_["fiber.context"];
    if (at_.word<std::uint16_t>(context + f_["context.mark"]) != f_["context.mark_waiting"]) return;
    registers regs;
    regs.pc = at_.word(context + f_["context.resume_at"]);
    set_frame(regs, at_.word(context + f_["context.stack_pointer"]), at_.word(context + f_["context.frame_pointer"]),
              at_.word(context + f_["context.base"]));
    const address waits_at = at_.word(fiber + f_["fiber.waits_at"]);
    const address begin = f_["context.outermost"], end = f_["context.outermost_end"];
    std::vector<address> calls;
    bool inside = false;
    for (std::size_t depth = 0; depth != 512; ++depth) {
      const auto caller = unwinder_.step(regs, depth == 0);
      if (!caller) break;
      if (begin <= regs.pc && regs.pc <= end) {
        calls.resize(calls.size() - std::min<std::size_t>(calls.size(), 2));
        break;
      }
      if (stack_pointer_of(regs) >= waits_at) inside = true;
      if (inside) calls.push_back(regs.pc - 1);
      regs = caller->regs;
    }
    for (const address call : calls)
      if (one.stack.size() < how_.most_frames) {
        one.stack.push_back(call);
        one.frames.push_back(0);
      }
  }

  const memory& at_;
  const fields& f_;
  const look_options how_;
  tasks_seen& into_;
  unwinder unwinder_;
  const std::size_t first_ = into_.tasks.size();

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
                      deadline_ = f_["env.deadline"], go_on_ = f_.has("fiber.go_on") ? f_["fiber.go_on"] : 0,
                      about_to_wait_ = f_.has("group.about_to_wait") ? f_["group.about_to_wait"] : 0,
                      top_first_ = f_["tops.first"], top_next_ = f_["top_root.next"], top_kind_ = f_["top_root.kind"],
                      top_function_ = f_["top_root.function"],
                      fork_function_ = f_.has("fork.function") ? f_["fork.function"] : none,
                      body_function_ = f_.has("scope.body_function") ? f_["scope.body_function"] : none;

  std::vector<address> workers_;
  std::unordered_map<address, int> runs_;
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
