#include "report.hpp"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <string_view>
#include <utility>

#include "base/json.hpp"

namespace weft_tool {

namespace {

bool is_own(std::string_view name) noexcept {
  return name.substr(0, name.find('(')).find("weft::detail::") != name.npos;
}

using weft::detail::json_string;

std::string id_or_null(address at) { return at != 0 ? json_string(hex(at)) : "null"; }

// For Graphviz.
std::string quoted(std::string_view text) {
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

// A holder that is no task of this snapshot is not known.
address holder_in(const task_wait& what, const tasks_seen& known) {
  return known.find(what.held_by) ? what.held_by : 0;
}

constexpr std::size_t deepest_indent = 40;

std::string described(const place_seen& where) { return where.file + ':' + std::to_string(where.line); }

}  // namespace

// Both clocks are the system's: of a core file's process, this is how long ago it would have been now.
std::int64_t steady_now() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::string hex(address at) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(at));
  return text;
}

std::string name_of(const task_seen& one, const target& in) {
  for (std::size_t i = one.stack.size(); i-- != 0;)
    if (std::string name = in.name_of(one.stack[i]); !is_own(name)) return name;
  return one.function != 0 ? in.name_of(one.function) : std::string{"task"};
}

void write_stack(std::ostream& out, const task_seen& one, const target& in, const std::string& indent) {
  for (const address code : one.stack)
    if (const std::string name = in.name_of(code); !is_own(name)) out << indent << name << '\n';
}

std::string describe(const task_wait& what, const tasks_seen& all, const target& in) {
  std::string text = what.what;
  if (what.at != 0) text += ' ' + hex(what.at);
  if (what.held_by != 0) {
    const auto holder = all.find(what.held_by);
    text += ", held by " + (holder ? name_of(all.tasks[*holder], in) + " (" + hex(what.held_by) + ')'
                                   : "root " + hex(what.held_by) + ", which is no task that was found");
  }
  return text;
}

std::string described_state(const task_seen& one, std::int64_t now) {
  std::string text;
  if (one.since) text += ", for " + std::to_string((now - *one.since) / 1'000'000) + " ms";
  if (one.deadline != task_seen::max_deadline)
    text += ", deadline in " + std::to_string((one.deadline - now) / 1'000'000) + " ms";
  if (one.deadline_set_at)
    text += " (set at " + described(*one.deadline_set_at) + ", in " + one.deadline_set_at->function + ')';
  if (!one.stop_requested) return text;
  text += ", told to stop";
  if (one.cause) text += " (" + one.cause->reason + ", " + described(one.cause->where) + ')';
  return text + (one.is_shielded ? ", shielded" : "");
}

void write_json(std::ostream& out, const tasks_seen& all, const target& in) {
  const std::int64_t now = steady_now();
  const auto list = [&](const auto& of, const auto& put) {
    out << '[';
    bool first = true;
    for (const auto& one : of) {
      if (!std::exchange(first, false)) out << ',';
      put(one);
    }
    out << ']';
  };
  out << "{\"version\":1,\"from\":" << json_string(in.what())
      << ",\"is_complete\":" << (all.is_complete ? "true" : "false")
      << ",\"is_stuck\":" << (all.is_stuck ? "true" : "false") << ",\"stood_ms\":" << in.stood_ms
      << ",\"processor_ms\":" << in.processor_ms << ",\"late_reads\":" << in.late_reads() << ",\"deadlocks\":";
  list(all.circles,
       [&](const auto& circle) { list(circle, [&](std::size_t one) { out << id_or_null(all.tasks[one].at); }); });
  out << ",\"pools\":";
  list(all.pools, [&](const pool_seen& one) {
    out << "{\"executor\":" << json_string(hex(one.executor)) << ",\"workers\":" << one.workers
        << ",\"waiting\":" << one.waiting << '}';
  });
  out << ",\"workers\":";
  list(all.workers, [&](const worker_seen& one) {
    out << "{\"thread\":" << one.thread << ",\"pool\":" << one.pool
        << ",\"runs\":" << id_or_null(all.find(one.runs) ? one.runs : 0) << ",\"queued\":" << one.queued;
    if (one.since) out << ",\"running_ms\":" << (now - *one.since) / 1'000'000;
    out << '}';
  });
  out << ",\"tasks\":";
  list(all.tasks, [&](const task_seen& one) {
    out << "{\"id\":" << id_or_null(one.at)
        << ",\"parent\":" << id_or_null(one.parent != none ? all.tasks[one.parent].at : 0) << ",\"kind\":\""
        << to_string(one.kind) << "\",\"state\":\"" << to_string(one.state)
        << "\",\"function\":" << json_string(name_of(one, in)) << ",\"waits\":";
    list(one.waits, [&](const task_wait& what) {
      out << "{\"what\":" << json_string(what.what) << ",\"at\":" << json_string(hex(what.at))
          << ",\"holder\":" << id_or_null(holder_in(what, all)) << '}';
    });
    if (one.since)
      out << (one.state == task_state::running ? ",\"running_ms\":" : ",\"waiting_ms\":")
          << (now - *one.since) / 1'000'000;
    out << ",\"stack\":";
    list(one.stack, [&](address code) { out << json_string(in.name_of(code)); });
    out << ",\"frames\":";
    std::size_t index = 0;
    list(one.frames, [&](address at) {
      out << "{\"at\":" << json_string(hex(at)) << ",\"code\":" << json_string(hex(one.stack[index++])) << '}';
    });
    if (one.deadline != task_seen::max_deadline) out << ",\"deadline_in_ms\":" << (one.deadline - now) / 1'000'000;
    if (one.deadline_set_at)
      out << ",\"deadline_set_at\":{\"function\":" << json_string(one.deadline_set_at->function)
          << ",\"file\":" << json_string(one.deadline_set_at->file) << ",\"line\":" << one.deadline_set_at->line << '}';
    out << ",\"stop_requested\":" << (one.stop_requested ? "true" : "false")
        << ",\"is_shielded\":" << (one.is_shielded ? "true" : "false");
    if (one.cause)
      out << ",\"cause\":{\"reason\":" << json_string(one.cause->reason)
          << ",\"file\":" << json_string(one.cause->where.file) << ",\"line\":" << one.cause->where.line << '}';
    out << ",\"worker\":" << one.worker << '}';
  });
  out << "}\n";
}

void write_dot(std::ostream& out, const tasks_seen& all, const target& in) {
  std::vector<std::size_t> next_in_circle(all.tasks.size(), none);
  for (const auto& circle : all.circles)
    for (std::size_t i = 0; i != circle.size(); ++i) next_in_circle[circle[i]] = circle[(i + 1) % circle.size()];
  out << "digraph weft {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (std::size_t i = 0; i != all.tasks.size(); ++i) {
    const task_seen& one = all.tasks[i];
    std::string label = name_of(one, in) + '\n' + to_string(one.kind) + ' ' + hex(one.at) + ", " + to_string(one.state);
    for (const task_wait& what : one.waits)
      label += '\n' + what.what + (what.at != 0 ? ' ' + hex(what.at) : std::string{});
    out << "  " << quoted(hex(one.at)) << " [label=" << quoted(label)
        << (next_in_circle[i] != none ? ", color=red" : "") << "];\n";
  }
  for (std::size_t i = 0; i != all.tasks.size(); ++i) {
    const task_seen& one = all.tasks[i];
    if (one.parent != none)
      out << "  " << quoted(hex(all.tasks[one.parent].at)) << " -> " << quoted(hex(one.at)) << " [style=dotted];\n";
    for (const task_wait& what : one.waits) {
      if (holder_in(what, all) == 0) continue;
      const bool is_red = next_in_circle[i] != none && all.tasks[next_in_circle[i]].at == what.held_by;
      out << "  " << quoted(hex(one.at)) << " -> " << quoted(hex(what.held_by)) << " [label=" << quoted(what.what)
          << (is_red ? ", color=red" : "") << "];\n";
    }
  }
  out << "}\n";
}

void write_text(std::ostream& out, const tasks_seen& all, const target& in) {
  const auto name = [&](std::size_t i) { return name_of(all.tasks[i], in) + " (" + hex(all.tasks[i].at) + ')'; };
  const std::int64_t now = steady_now();
  for (const auto& circle : all.circles) {
    out << "DEADLOCK: ";
    for (const std::size_t one : circle) out << name(one) << " -> ";
    out << name(circle.front()) << '\n';
    for (const std::size_t one : circle) {
      for (const task_wait& what : all.tasks[one].waits)
        out << "  " << name(one) << " waits for " << describe(what, all, in) << '\n';
      write_stack(out, all.tasks[one], in, "      ");
    }
  }
  if (all.circles.empty() && all.is_stuck) out << hint_of_stuck << '\n';
  std::size_t counts[3]{};
  for (const task_seen& one : all.tasks) ++counts[static_cast<std::size_t>(one.state)];
  out << in.what() << ": " << all.tasks.size() << " tasks: " << counts[0] << " running, " << counts[1] << " ready, "
      << counts[2] << " waiting; " << all.workers.size() << " threads in " << all.pools.size() << " pools";
  if (!all.is_complete) out << "; some tasks are missing";
  out << '\n';
  if (in.copied_bytes != 0) {
    char text[160];
    std::snprintf(text, sizeof text,
                  "its threads stood for %.1f ms, while %.1f MiB were copied in %.1f ms of processor time", in.stood_ms,
                  static_cast<double>(in.copied_bytes) / (1 << 20), in.processor_ms);
    out << text;
    if (in.late_reads() != 0) out << "; " << in.late_reads() << " pieces were read later, and may be of another moment";
    out << '\n';
  }

  std::vector<std::vector<std::size_t>> below(all.tasks.size());
  std::vector<std::pair<std::size_t, std::size_t>> next;  // the task, and how deep it is
  for (std::size_t i = all.tasks.size(); i-- != 0;)
    if (all.tasks[i].parent != none)
      below[all.tasks[i].parent].push_back(i);
    else
      next.emplace_back(i, 0);
  while (!next.empty()) {
    const auto [i, depth] = next.back();
    next.pop_back();
    const task_seen& one = all.tasks[i];
    const std::string indent(2 * std::min(depth, deepest_indent), ' ');
    out << indent << to_string(one.kind) << ' ' << name(i) << ": " << to_string(one.state);
    if (one.worker >= 0) out << " in thread " << all.workers[static_cast<std::size_t>(one.worker)].thread;
    for (std::size_t k = 0; k != one.waits.size(); ++k)
      out << (k == 0 ? " for " : " or ") << describe(one.waits[k], all, in);
    out << described_state(one, now) << '\n';
    write_stack(out, one, in, indent + "    ");
    for (const std::size_t child : below[i]) next.emplace_back(child, depth + 1);
  }
}

}  // namespace weft_tool
