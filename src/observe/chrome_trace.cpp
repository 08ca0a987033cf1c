// What Chrome's trace viewer and Perfetto show of a recording: the "Trace Event Format", as JSON.
//
//   process 1   the threads, a track each: turns of traced roots, sleeps, and what happened at a moment
//   process 2   the traced requests, a track each: the turns of all their parts. Those that overlap have tracks besides
//   arrows      from each wake-up to the next turn of the root that was woken
#include <algorithm>
#include <cstdint>
#include <locale>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>
#include <weft/recording.hpp>

#include "base/json.hpp"
#include "observe/recording_format.hpp"

namespace weft {
namespace {

using traced_event = recording::event;

constexpr int threads = 1, requests = 2;
constexpr std::size_t most_lanes = 256;  // of a request

/// A piece of a track.
struct slice {
  std::int64_t from = 0, to = 0;
  std::uint64_t root = 0, code = 0;
  std::uint32_t thread = 0, request = 0;
  bool is_open = false;  // it had not ended
};

// Numbers are as JSON wants them, whatever locale and format the stream has.
class json_writer {
 public:
  explicit json_writer(std::ostream& out)
      : out_{out}, locale_{out.imbue(std::locale::classic())}, flags_{out.flags(std::ios_base::dec)} {
    out_ << R"({"displayTimeUnit":"ns","traceEvents":[)";
  }
  json_writer(const json_writer&) = delete;
  ~json_writer() {
    out_.flags(flags_);
    out_.imbue(locale_);
  }
  void end() { out_ << "\n]}\n"; }

  /// Begins an event; whoever calls ends it with "}".
  std::ostream& begin(const char* phase, std::string_view name, int process, std::uint64_t track, std::int64_t when) {
    out_ << (is_first_ ? "\n" : ",\n") << R"({"ph":")" << phase << R"(","name":)";
    is_first_ = false;
    text(name);
    return out_ << R"(,"pid":)" << process << R"(,"tid":)" << track << R"(,"ts":)" << micro(when);
  }
  void name(const char* what, int process, std::uint64_t track, std::string_view name) {
    begin("M", what, process, track, 0) << R"(,"args":{"name":)";
    text(name);
    out_ << "}}";
  }
  void text(std::string_view all) { out_ << detail::json_string(all); }
  static std::string micro(std::int64_t nanoseconds) {
    const auto bits = static_cast<std::uint64_t>(nanoseconds);
    const std::uint64_t size = nanoseconds < 0 ? 0 - bits : bits;
    std::string rest = std::to_string(1000 + size % 1000);
    rest.front() = '.';
    return (nanoseconds < 0 ? "-" : "") + std::to_string(size / 1000) + rest;
  }

 private:
  std::ostream& out_;
  const std::locale locale_;
  const std::ios_base::fmtflags flags_;
  bool is_first_ = true;
};

const char* name_of_moment(event_kind kind) noexcept {
  switch (kind) {
    case event_kind::call_thread: return "wakes a thread";
    case event_kind::steal: return "steals";
    case event_kind::stop: return "stop";
    case event_kind::deadline: return "deadline missed";
    case event_kind::stall: return "stall";
    case event_kind::io_error: return "I/O error";
    case event_kind::take_over: return "a spare worker takes over";
    case event_kind::sample: return "sample";
    case event_kind::trace_begins: return "request begins";
    case event_kind::trace_ends: return "request ends";
    case event_kind::fork: return "fork";
    default: return nullptr;  // the others are pieces of tracks, or arrows
  }
}

/// What the events say together.
struct story {
  std::vector<slice> turns, sleeps;
  struct arrow {
    std::uint32_t from_thread = 0, to_thread = 0;
    std::int64_t from = 0, to = 0;
    std::uint64_t kind = 0;
  };
  std::vector<arrow> wakes;
  std::map<std::uint32_t, std::uint64_t> names;  // of requests
};

story tell(std::span<const traced_event> events) {
  story all;
  struct thread_now {
    slice turn;
    std::int64_t sleeps_since = 0;
    bool runs = false, sleeps = false;
  };
  std::map<std::uint32_t, thread_now> now;
  std::map<std::uint64_t, std::size_t> woken;  // by root: its arrow, which has no end yet
  std::int64_t last = 0;
  for (const traced_event& one : events) {
    thread_now& here = now[one.ring];
    last = std::max(last, one.nanoseconds);
    switch (one.kind) {
      case event_kind::turn_begins:
        // If the end is not there, it was lost.
        if (here.runs) all.turns.push_back(here.turn), all.turns.back().to = one.nanoseconds;
        here.runs = true;
        here.turn = {.from = one.nanoseconds,
                     .root = one.first,
                     .code = one.second,
                     .thread = one.thread,
                     .request = one.number};
        if (const auto found = woken.find(one.first); found != woken.end()) {
          all.wakes[found->second].to_thread = one.thread;
          all.wakes[found->second].to = one.nanoseconds;
          woken.erase(found);
        }
        break;
      case event_kind::turn_ends:
        if (!here.runs) break;  // its begin was written over
        here.turn.to = one.nanoseconds;
        all.turns.push_back(here.turn);
        here.runs = false;
        break;
      case event_kind::wake:
        woken[one.first] = all.wakes.size();
        all.wakes.push_back({.from_thread = one.thread, .from = one.nanoseconds, .to = -1, .kind = one.second});
        break;
      case event_kind::sleep:
        here.sleeps = true;
        here.sleeps_since = one.nanoseconds;
        break;
      case event_kind::wake_up:
        if (here.sleeps) all.sleeps.push_back({.from = here.sleeps_since, .to = one.nanoseconds, .thread = one.thread});
        here.sleeps = false;
        break;
      case event_kind::trace_begins: all.names[one.number] = one.second; break;
      default: break;
    }
  }
  for (auto& [ring, here] : now) {
    if (!here.runs) continue;
    here.turn.to = std::max(last, here.turn.from);
    here.turn.is_open = true;
    all.turns.push_back(here.turn);
  }
  std::erase_if(all.wakes, [](const story::arrow& one) { return one.to < one.from; });
  std::ranges::sort(all.turns, {}, [](const slice& one) { return std::pair{one.from, one.thread}; });
  return all;
}

}  // namespace

void recording::write_chrome_trace(std::ostream& out) const {
  const story all = tell(events());
  json_writer json{out};
  json.name("process_name", threads, 0, "threads");
  json.name("process_name", requests, 0, "traced requests");

  std::map<std::uint32_t, bool> seen;
  for (const traced_event& one : events())
    if (!std::exchange(seen[one.thread], true))
      json.name("thread_name", threads, one.thread,
                std::string{thread_name(one.thread)} + ' ' + std::to_string(one.thread));

  const auto piece = [&](const slice& one, std::string_view name, int process, std::uint64_t track) {
    json.begin("X", name, process, track, one.from) << R"(,"dur":)" << json_writer::micro(one.to - one.from);
  };
  const auto name_of_turn = [&](const slice& one) {
    return one.code != 0 ? function(one.code) : "root " + detail::hexadecimal(one.root);
  };
  for (const slice& one : all.sleeps) {
    piece(one, "asleep", threads, one.thread);
    out << "}";
  }
  std::map<std::uint32_t, std::vector<std::int64_t>> lanes;  // by request: until when each is taken
  for (const slice& one : all.turns) {
    std::vector<std::int64_t>& of = lanes[one.request];
    std::size_t lane = 0;
    while (lane != of.size() && lane + 1 != most_lanes && of[lane] > one.from) ++lane;
    if (lane == of.size()) {
      of.push_back(0);
      std::string name{text(all.names.contains(one.request) ? all.names.at(one.request) : 0)};
      if (name.empty()) name = "request";
      json.name("thread_name", requests, std::uint64_t{one.request} * most_lanes + lane,
                name + " #" + std::to_string(one.request) + (lane != 0 ? " (" + std::to_string(lane + 1) + ")" : ""));
    }
    of[lane] = std::max(of[lane], one.to);
    const std::string name = name_of_turn(one);
    const auto arguments = [&](std::uint64_t other) {
      out << R"(,"args":{"root":)";
      json.text(detail::hexadecimal(one.root));
      out << R"(,")" << "request" << R"(":)" << one.request << R"(,"thread":)" << other
          << (one.is_open ? R"(,"still running":true)" : "") << "}}";
    };
    piece(one, name, threads, one.thread);
    arguments(one.thread);
    piece(one, name, requests, std::uint64_t{one.request} * most_lanes + lane);
    arguments(one.thread);
  }
  std::uint64_t number = 0;
  for (const story::arrow& one : all.wakes) {
    const std::string_view kind = text(one.kind);
    const std::string_view name = kind.empty() ? std::string_view{"wake"} : kind;
    json.begin("s", name, threads, one.from_thread, one.from) << R"(,"cat":"wake","id":)" << ++number << "}";
    json.begin("f", name, threads, one.to_thread, one.to) << R"(,"cat":"wake","bp":"e","id":)" << number << "}";
  }
  for (const traced_event& one : events()) {
    const char* const name = name_of_moment(one.kind);
    if (name == nullptr) continue;
    json.begin("i", name, threads, one.thread, one.nanoseconds)
        << R"(,"s":"t","args":{"number":)" << one.number << R"(,"first":)";
    json.text(detail::hexadecimal(one.first));
    out << R"(,"second":)";
    const std::string_view known = text(one.second);
    const bool is_code = one.kind == event_kind::stall || one.kind == event_kind::sample;
    json.text(!known.empty() ? std::string{known} : is_code ? function(one.second) : detail::hexadecimal(one.second));
    out << "}}";
  }
  json.end();
}

}  // namespace weft
