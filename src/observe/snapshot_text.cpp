// A snapshot as JSON, as a graph, and as text for people.
#include <weft/snapshot.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ostream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json.hpp"

namespace weft {
namespace {

using detail::json_string;

// ---- names ------------------------------------------------------------------------------------------------------------------

// Names of functions: each is looked up once, since that searches a table of symbols.
class function_names {
 public:
  const std::string& of(const async_frame& one) {
    const auto [at, is_new] = known_.try_emplace(one.address());
    if (is_new && one.address() != nullptr) {
      at->second = one.function();
      if (at->second.empty()) at->second = place_of(one);
    }
    return at->second;
  }

  // What a reader knows a task by: its outermost function that is not weft's own.
  const std::string& of(const task_info& one) {
    for (std::size_t i = one.stack.size(); i-- != 0;)
      if (const std::string& name = of(one.stack[i]); !is_own(name)) return name;
    return of(one.function);
  }

  static bool is_own(std::string_view name) noexcept {
    const std::size_t arguments = name.find('(');
    return name.substr(0, arguments).find("weft::detail::") != std::string_view::npos;
  }

 private:
  static std::string place_of(const async_frame& one) {
    char offset[24];
    std::snprintf(offset, sizeof offset, "+0x%zx", static_cast<std::size_t>(one.offset()));
    return one.module() + offset;
  }

  std::unordered_map<const void*, std::string> known_;
};

std::string written(task_id id) {
  char text[48];
  std::snprintf(text, sizeof text, "0x%zx.%zu", static_cast<std::size_t>(id.address()),
                static_cast<std::size_t>(id.generation()));
  return text;
}
std::string written(const void* at) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%zx", reinterpret_cast<std::size_t>(at));
  return text;
}

using milliseconds = std::chrono::milliseconds;
template <class Duration>
long long count_ms(Duration of) noexcept {
  return static_cast<long long>(std::chrono::duration_cast<milliseconds>(of).count());
}

// ---- JSON -------------------------------------------------------------------------------------------------------------------

// Writes JSON: puts the commas.
class snapshot_json {
 public:
  explicit snapshot_json(std::ostream& out) noexcept : out_{out} {}

  snapshot_json& begin(char bracket) {
    separate();
    out_ << bracket;
    first_ = true;
    return *this;
  }
  snapshot_json& end(char bracket) {
    out_ << bracket;
    first_ = false;
    return *this;
  }
  snapshot_json& key(std::string_view name) {
    separate();
    out_ << json_string(name);
    out_ << ':';
    first_ = true;
    return *this;
  }
  snapshot_json& text(std::string_view value) {
    separate();
    out_ << json_string(value);
    return *this;
  }
  template <class Number>
  snapshot_json& number(Number value) {
    separate();
    out_ << std::to_string(value);
    return *this;
  }
  snapshot_json& boolean(bool value) {
    separate();
    out_ << (value ? "true" : "false");
    return *this;
  }
  snapshot_json& null() {
    separate();
    out_ << "null";
    return *this;
  }
  snapshot_json& id(task_id value) { return value ? text(written(value)) : null(); }

 private:
  void separate() {
    if (!first_) out_ << ',';
    first_ = false;
  }

  std::ostream& out_;
  bool first_ = true;
};

void put_task_as_json(snapshot_json& to, const task_info& one, function_names& known,
                      std::chrono::steady_clock::time_point now) {
  to.begin('{').key("id").id(one.id).key("parent").id(one.parent);
  to.key("kind").text(to_string(one.kind)).key("state").text(to_string(one.state));
  to.key("function").text(known.of(one));
  to.key("waits").begin('[');
  for (const task_wait& what : one.waits)
    to.begin('{').key("what").text(what.what).key("at").text(written(what.at)).key("holder").id(what.holder).end('}');
  to.end(']');
  if (one.since)
    to.key(one.state == task_state::running ? "running_ms" : "waiting_ms").number(count_ms(now - *one.since));
  to.key("stack").begin('[');
  for (const async_frame& frame : one.stack) to.text(known.of(frame));
  to.end(']');
  if (one.deadline != std::chrono::steady_clock::time_point::max())
    to.key("deadline_in_ms").number(count_ms(one.deadline - now));
  if (one.deadline_set_at) {
    to.key("deadline_set_at").begin('{').key("function").text(one.deadline_set_at->function_name());
    to.key("file").text(one.deadline_set_at->file_name()).key("line").number(one.deadline_set_at->line()).end('}');
  }
  to.key("stop_requested").boolean(one.stop_requested).key("is_shielded").boolean(one.is_shielded);
  if (one.cause) {
    to.key("cause").begin('{').key("reason").text(one.cause->reason != nullptr ? one.cause->reason : "");
    to.key("file").text(one.cause->where.file_name()).key("line").number(one.cause->where.line()).end('}');
  }
  to.key("worker").number(one.worker).end('}');
}

// ---- dot --------------------------------------------------------------------------------------------------------------------

std::string dot_quoted(std::string_view text) {
  std::string all = "\"";
  for (const char one : text) {
    if (one == '"' || one == '\\') all += '\\';
    if (one == '\n')
      all += "\\n";
    else if (static_cast<unsigned char>(one) >= 0x20)
      all += one;
  }
  return all + '"';
}

// ---- text -------------------------------------------------------------------------------------------------------------------

// Writes text for people.
class snapshot_text {
 public:
  snapshot_text(const snapshot& of, std::ostream& out) : all_{of}, out_{out} {}

  void put_deadlocks() {
    if (!all_.deadlocks().empty()) index_tasks();
    for (const deadlock& one : all_.deadlocks()) put_deadlock(one);
  }
  // Of one alone, looking its tasks up is cheaper than an index of all.
  void put_deadlock(const deadlock& one) {
    out_ << "DEADLOCK: ";
    for (const task_id id : one.circle) out_ << name(id) << " -> ";
    out_ << name(one.circle.front()) << '\n';
    for (const task_id id : one.circle) {
      const task_info* const its = find(id);
      if (its == nullptr) continue;
      for (const task_wait& what : its->waits) {
        out_ << "  " << name(id) << " waits for ";
        put_wait(what);
        out_ << '\n';
      }
      out_ << its->stack;
    }
  }

  // How many there are, and then a tree: a parent, and then all below it.
  void put_tree() {
    index_tasks();
    std::size_t counts[3]{};
    for (const task_info& one : all_.tasks) ++counts[static_cast<std::size_t>(one.state)];
    out_ << all_.tasks.size() << " tasks: " << counts[0] << " running, " << counts[1] << " ready, " << counts[2]
         << " waiting; " << all_.workers.size() << " threads in " << all_.pools.size() << " pools"
         << (all_.is_complete ? "" : "; some tasks are missing") << '\n';
    std::vector<std::vector<std::size_t>> below(all_.tasks.size());
    std::vector<std::pair<std::size_t, std::size_t>> next;  // the task, and how deep it is
    for (std::size_t i = all_.tasks.size(); i-- != 0;) {
      const task_id parent = all_.tasks[i].parent;
      if (const auto above = at_.find(parent); parent && above != at_.end())
        below[above->second].push_back(i);
      else
        next.emplace_back(i, 0);
    }
    while (!next.empty()) {
      const auto [i, depth] = next.back();
      next.pop_back();
      put_task(all_.tasks[i], depth);
      for (const std::size_t child : below[i]) next.emplace_back(child, depth + 1);
    }
  }

 private:
  void index_tasks() {
    if (!at_.empty()) return;
    at_.reserve(all_.tasks.size());
    for (std::size_t i = 0; i != all_.tasks.size(); ++i) at_.emplace(all_.tasks[i].id, i);
  }
  const task_info* find(task_id id) const {
    if (at_.empty()) return all_.find(id);
    const auto found = at_.find(id);
    return found != at_.end() ? &all_.tasks[found->second] : nullptr;
  }
  std::string name(task_id id) {
    const task_info* const found = find(id);
    const std::string its = found != nullptr ? known_.of(*found) : std::string{};
    return (its.empty() ? std::string{"task"} : its) + " (" + written(id) + ')';
  }

  void put_wait(const task_wait& what) {
    out_ << what.what;
    if (what.at != nullptr) out_ << ' ' << written(what.at);
    if (what.holder) out_ << ", held by " << name(what.holder);
  }

  void put_task(const task_info& one, std::size_t depth) {
    constexpr std::size_t deepest_indent = 40;  // in a tree of very many, the depth is limited on paper
    const std::string indent(2 * std::min(depth, deepest_indent), ' ');
    out_ << indent << to_string(one.kind) << ' ' << name(one.id) << ": " << to_string(one.state);
    if (one.worker >= 0) out_ << " in thread " << all_.workers[static_cast<std::size_t>(one.worker)].thread;
    for (std::size_t k = 0; k != one.waits.size(); ++k) {
      out_ << (k == 0 ? " for " : " or ");
      put_wait(one.waits[k]);
    }
    if (one.since) out_ << ", for " << count_ms(now_ - *one.since) << " ms";
    if (one.deadline != std::chrono::steady_clock::time_point::max())
      out_ << ", deadline in " << count_ms(one.deadline - now_) << " ms";
    if (one.deadline_set_at)
      out_ << " (set at " << one.deadline_set_at->file_name() << ':' << one.deadline_set_at->line() << ", in "
           << one.deadline_set_at->function_name() << ')';
    if (one.stop_requested) {
      out_ << ", told to stop";
      if (one.cause && one.cause->reason != nullptr)
        out_ << " (" << one.cause->reason << ", " << one.cause->where.file_name() << ':' << one.cause->where.line()
             << ')';
      if (one.is_shielded) out_ << ", shielded";
    }
    out_ << '\n';
    for (const async_frame& frame : one.stack)
      if (const std::string& its = known_.of(frame); !function_names::is_own(its))
        out_ << indent << "    " << its << '\n';
  }

  const snapshot& all_;
  std::ostream& out_;
  const std::chrono::steady_clock::time_point now_ = std::chrono::steady_clock::now();
  function_names known_;
  std::unordered_map<task_id, std::size_t> at_;
};

}  // namespace

void snapshot::json(std::ostream& out) const {
  function_names known;
  snapshot_json to{out};
  const auto now = std::chrono::steady_clock::now();
  to.begin('{').key("version").number(1);
  to.key("taken_ms").number(count_ms(taken.time_since_epoch()));
  to.key("is_complete").boolean(is_complete).key("is_stuck").boolean(stuck_);
  to.key("deadlocks").begin('[');
  for (const deadlock& one : found_) {
    to.begin('[');
    for (const task_id id : one.circle) to.id(id);
    to.end(']');
  }
  to.end(']').key("pools").begin('[');
  for (const pool_info& one : pools)
    to.begin('{').key("executor").text(written(one.executor)).key("workers").number(one.workers).end('}');
  to.end(']').key("workers").begin('[');
  for (const worker_info& one : workers) {
    to.begin('{').key("thread").number(one.thread).key("pool").number(one.pool);
    to.key("runs").id(one.runs).key("queued").number(one.queued);
    if (one.since) to.key("running_ms").number(count_ms(now - *one.since));
    to.end('}');
  }
  to.end(']').key("tasks").begin('[');
  for (const task_info& one : tasks) put_task_as_json(to, one, known, now);
  to.end(']').end('}');
  out << '\n';
}

void snapshot::dot(std::ostream& out) const {
  function_names known;
  std::unordered_map<task_id, task_id> blocked;  // and the next in its circle
  for (const deadlock& one : found_)
    for (std::size_t i = 0; i != one.circle.size(); ++i)
      blocked.emplace(one.circle[i], one.circle[(i + 1) % one.circle.size()]);
  out << "digraph weft {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (const task_info& one : tasks) {
    std::string label =
        known.of(one) + "\n" + to_string(one.kind) + ' ' + written(one.id) + ", " + to_string(one.state);
    for (const task_wait& what : one.waits)
      label += std::string{"\n"} + what.what + (what.at != nullptr ? ' ' + written(what.at) : "");
    out << "  " << dot_quoted(written(one.id)) << " [label=" << dot_quoted(label)
        << (blocked.contains(one.id) ? ", color=red" : "") << "];\n";
  }
  for (const task_info& one : tasks) {
    if (one.parent)
      out << "  " << dot_quoted(written(one.parent)) << " -> " << dot_quoted(written(one.id)) << " [style=dotted];\n";
    const auto in_circle = blocked.find(one.id);
    for (const task_wait& what : one.waits) {
      if (!what.holder) continue;
      const bool is_red = in_circle != blocked.end() && in_circle->second == what.holder;
      out << "  " << dot_quoted(written(one.id)) << " -> " << dot_quoted(written(what.holder))
          << " [label=" << dot_quoted(what.what) << (is_red ? ", color=red" : "") << "];\n";
    }
  }
  out << "}\n";
}

void snapshot::deadlocks_text(std::ostream& out) const { snapshot_text{*this, out}.put_deadlocks(); }
void snapshot::deadlock_text(const deadlock& one, std::ostream& out) const {
  snapshot_text{*this, out}.put_deadlock(one);
}

void snapshot::text(std::ostream& out) const {
  snapshot_text to{*this, out};
  to.put_deadlocks();
  if (found_.empty() && stuck_)
    out << "STUCK: every task waits for what only another task would do, and no timer, I/O or call is pending\n";
  to.put_tree();
}

}  // namespace weft
