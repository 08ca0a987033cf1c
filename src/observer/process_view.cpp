// Snapshots as texts, as snapshot.hpp writes them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <locale>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>
#include <weft/snapshot.hpp>

#include "base/json.hpp"
#include "core/running_probe.hpp"
#include "observer/answers.hpp"

namespace weft::detail {
namespace {

// What `write` writes to a stream, with numbers in the classic locale, whatever the program's locale is.
template <class Write>
std::string written_by(const Write& write) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  write(out);
  return std::move(out).str();
}

template <class What>
std::string text_of(const What& what) {
  return written_by([&](std::ostream& out) { out << what; });
}

std::string name_of(const task_info& one) {
  if (one.function.address() == nullptr) return "?";
  std::string name = one.function.function();
  if (name.empty()) {
    char offset[24];
    std::snprintf(offset, sizeof offset, "+0x%zx", static_cast<std::size_t>(one.function.offset()));
    name = one.function.module() + offset;
  }
  return name;
}

// The wait of `one` for the next task in the circle.
const task_wait* wait_for(const task_info& one, task_id next) {
  const auto found = std::ranges::find(one.waits, next, &task_wait::holder);
  return found != one.waits.end() ? &*found : nullptr;
}

// A deadlock as snapshot::deadlock_text() writes it, and as a JSON object.
told_deadlock told(const snapshot& all, const deadlock& one) {
  told_deadlock is{
      .key = {}, .json = "{\"circle\":[", .text = written_by([&](std::ostream& out) { all.deadlock_text(one, out); })};
  const items<task_id>& circle = one.circle;
  for (std::size_t i = 0; i != circle.size(); ++i) {
    const task_id next = circle[(i + 1) % circle.size()];
    const task_info* const info = all.find(circle[i]);
    const task_wait* const wait = info != nullptr ? wait_for(*info, next) : nullptr;
    is.key += text_of(circle[i]) + ' ';
    if (i != 0) is.json += ',';
    is.json += "{\"id\":";
    append_json(is.json, text_of(circle[i]));
    is.json += ",\"function\":";
    append_json(is.json, info != nullptr ? name_of(*info) : "");
    is.json += ",\"waits_for\":";
    append_json(is.json, wait != nullptr ? wait->what : "");
    is.json += ",\"at\":";
    append_json(is.json, text_of(wait != nullptr ? wait->at : nullptr));
    is.json += ",\"held_by\":";
    append_json(is.json, text_of(next));
    is.json += ",\"stack\":[";
    if (info != nullptr) {
      for (const async_frame& frame : info->stack) {
        if (is.json.back() != '[') is.json += ',';
        append_json(is.json, frame.function().empty() ? frame.module() : frame.function());
      }
    }
    is.json += "]}";
  }
  is.json += "]}";
  return is;
}

}  // namespace

struct process_view::parts {
  snapshot all = take_snapshot({.running_stacks = are_threads_asked()});
};

process_view::process_view() : parts_{std::make_unique<parts>()} {}
process_view::~process_view() = default;

bool are_deadlocks() { return !take_snapshot({.stacks = false, .deadlocks = true}).deadlocks().empty(); }

std::string process_view::json() const {
  std::string text = written_by([&](std::ostream& out) { parts_->all.json(out); });
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string process_view::dot() const {
  return written_by([&](std::ostream& out) { parts_->all.dot(out); });
}

std::string process_view::text() const {
  return written_by([&](std::ostream& out) { parts_->all.text(out); });
}

std::vector<told_deadlock> process_view::deadlocks() const {
  std::vector<told_deadlock> found;
  for (const deadlock& one : parts_->all.deadlocks()) found.push_back(told(parts_->all, one));
  return found;
}

}  // namespace weft::detail
