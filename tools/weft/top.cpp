// weft top: the workers of a process and what its tasks are at, again each second. Each look stops the process for some
// milliseconds, as weft dump does.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "report.hpp"
#include "screen.hpp"
#include "target.hpp"
#include "tasks.hpp"

namespace weft_tool {
namespace {

template <class... Args>
std::string format(const char* how, Args... args) {
  char text[512];
  std::snprintf(text, sizeof text, how, args...);
  return text;
}

double seconds_now() noexcept { return static_cast<double>(steady_now()) * 1e-9; }

// Seconds of processor time of a thread.
double processor_time(int pid, int thread) {
  std::ifstream in{"/proc/" + std::to_string(pid) + "/task/" + std::to_string(thread) + "/schedstat"};
  double nanoseconds = 0;
  in >> nanoseconds;
  return nanoseconds * 1e-9;
}

// One look at the process.
struct look {
  std::unique_ptr<target> from;
  tasks_seen all;
  double when = 0;
  std::vector<std::string> names, waits;  // of each task
  struct figures {
    double processor;
    std::uint64_t jobs, steals;
  };
  std::map<int, figures> of_threads;
};

look take(int pid) {
  look now;
  now.when = seconds_now();
  now.from = open_process(pid);
  now.all = look_at(*now.from);
  look_again_if_doubtful(now.from, now.all);
  for (const task_seen& one : now.all.tasks) {
    now.names.push_back(name_of(one, *now.from));
    now.waits.push_back(one.state != task_state::waiting ? to_string(one.state)
                        : one.waits.empty()              ? "waiting"
                                                         : one.waits.front().what);
  }
  for (const worker_seen& one : now.all.workers)
    now.of_threads[one.thread] = {processor_time(pid, one.thread), one.jobs, one.steals};
  return now;
}

// ---- the views --------------------------------------------------------------------------------------------------------

enum class view { groups, tasks, stack };
enum class grouping { both, function, wait };
enum class order { count, function, wait };
constexpr std::array grouping_names{"function and wait", "function", "wait"};
constexpr std::array order_names{"count", "function", "wait"};

struct group {
  std::string name, wait;
  std::vector<std::size_t> tasks;
};

class picture {
 public:
  void look_again(int pid) {
    before_ = std::exchange(now_, take(pid));
    make_groups();
  }

  std::vector<std::string> lines(std::size_t rows, std::size_t& marked) {
    std::vector<std::string> out = head();
    const std::size_t body = out.size();
    std::vector<std::string> list = shown_ == view::groups  ? group_lines()
                                    : shown_ == view::tasks ? task_lines()
                                                            : stack_lines();
    if (!list.empty()) {
      out.push_back(list.front());
      list.erase(list.begin());
    }
    const std::size_t room = rows > body + 2 ? rows - body - 2 : 1;
    chosen_ = std::min(chosen_, list.empty() ? 0 : list.size() - 1);
    const std::size_t first = chosen_ < room ? 0 : chosen_ - room + 1;
    marked = shown_ == view::stack || list.empty() ? static_cast<std::size_t>(-1) : out.size() + chosen_ - first;
    for (std::size_t i = first; i < list.size() && i < first + room; ++i) out.push_back(list[i]);
    out.resize(std::max(out.size(), rows > 0 ? rows - 1 : 0));
    out.push_back(is_typing_ ? "filter: " + filter_ + "_"
                             : "q quit  enter open  esc back  s sort  g group  / filter  p pause  up, down choose");
    return out;
  }

  // False: the end.
  bool press(screen::pressed by) {
    using key = screen::key;
    if (by.what == key::closed) return false;
    if (is_typing_) {
      if (by.what == key::enter)
        is_typing_ = false;
      else if (by.what == key::escape)
        is_typing_ = false, filter_.clear();
      else if (by.what == key::backspace && !filter_.empty())
        filter_.pop_back();
      else if (by.what == key::text && static_cast<unsigned char>(by.letter) >= 0x20)
        filter_ += by.letter;
      chosen_ = 0;
      make_groups();
      return true;
    }
    switch (by.what) {
      case key::up: chosen_ -= chosen_ != 0 ? 1 : 0; break;
      case key::down: ++chosen_; break;
      case key::page_up: chosen_ -= std::min<std::size_t>(chosen_, 10); break;
      case key::page_down: chosen_ += 10; break;
      case key::enter: open(); break;
      case key::escape: close(); break;
      case key::text:
        switch (by.letter) {
          case 'q': return false;
          case 's':
            sorted_ = static_cast<order>((static_cast<int>(sorted_) + 1) % 3);
            make_groups();
            break;
          case 'g':
            grouped_ = static_cast<grouping>((static_cast<int>(grouped_) + 1) % 3);
            make_groups();
            break;
          case '/': is_typing_ = true; break;
          case 'p': is_paused_ = !is_paused_; break;
          case 'k': chosen_ -= chosen_ != 0 ? 1 : 0; break;
          case 'j': ++chosen_; break;
          default: break;
        }
        break;
      default: break;
    }
    return true;
  }

  bool is_paused() const noexcept { return is_paused_; }

 private:
  void open() {
    if (shown_ == view::groups && chosen_ < groups_.size()) {
      name_ = groups_[chosen_].name;
      wait_ = groups_[chosen_].wait;
      shown_ = view::tasks;
      chosen_ = 0;
    } else if (shown_ == view::tasks) {
      const auto those = tasks_of_group();
      if (chosen_ >= those.size()) return;
      task_ = now_.all.tasks[those[chosen_]].at;
      shown_ = view::stack;
      chosen_ = 0;
    }
  }
  void close() {
    shown_ = shown_ == view::stack ? view::tasks : view::groups;
    chosen_ = 0;
  }

  std::string key_name(std::size_t i) const { return grouped_ != grouping::wait ? now_.names[i] : std::string{}; }
  std::string key_wait(std::size_t i) const { return grouped_ != grouping::function ? now_.waits[i] : std::string{}; }

  void make_groups() {
    std::map<std::pair<std::string, std::string>, group> all;
    for (std::size_t i = 0; i != now_.all.tasks.size(); ++i) {
      if (!filter_.empty() && now_.names[i].find(filter_) == std::string::npos &&
          now_.waits[i].find(filter_) == std::string::npos)
        continue;
      group& one = all[{key_name(i), key_wait(i)}];
      one.name = key_name(i);
      one.wait = key_wait(i);
      one.tasks.push_back(i);
    }
    groups_.clear();
    for (auto& [key, one] : all) groups_.push_back(std::move(one));
    std::ranges::sort(groups_, [this](const group& a, const group& b) {
      if (sorted_ == order::count && a.tasks.size() != b.tasks.size()) return a.tasks.size() > b.tasks.size();
      return sorted_ == order::wait ? std::tie(a.wait, a.name) < std::tie(b.wait, b.name)
                                    : std::tie(a.name, a.wait) < std::tie(b.name, b.wait);
    });
  }

  std::vector<std::size_t> tasks_of_group() const {
    const auto found =
        std::ranges::find_if(groups_, [this](const group& one) { return one.name == name_ && one.wait == wait_; });
    return found != groups_.end() ? found->tasks : std::vector<std::size_t>{};
  }

  std::vector<std::string> head() const {
    std::size_t counts[3]{};
    for (const task_seen& one : now_.all.tasks) ++counts[static_cast<std::size_t>(one.state)];
    std::vector<std::string> out;
    out.push_back(
        format("weft top: process %d: %zu tasks: %zu running, %zu ready, %zu waiting; %zu deadlocks; stood %.1f ms%s",
               now_.from->pid, now_.all.tasks.size(), counts[0], counts[1], counts[2], now_.all.circles.size(),
               now_.from->stood_ms, is_paused_ ? "; paused" : ""));
    for (const auto& circle : now_.all.circles) {
      std::string text = "DEADLOCK: ";
      for (const std::size_t one : circle) text += now_.names[one] + " -> ";
      out.push_back(text + now_.names[circle.front()]);
    }
    if (now_.all.circles.empty() && now_.all.is_stuck) out.emplace_back(hint_of_stuck);
    for (std::size_t i = 0; i != now_.all.pools.size(); ++i)
      out.push_back(format("pool %zu: %u workers, %llu jobs that none has taken", i, now_.all.pools[i].workers,
                           static_cast<unsigned long long>(now_.all.pools[i].waiting)));
    out.emplace_back(" THREAD POOL  CPU%   QUEUE    JOBS/S  STEALS/S  RUNS");
    constexpr std::size_t most_workers = 32;
    const double passed = now_.when - before_.when;
    for (const worker_seen& one : now_.all.workers) {
      if (out.size() > most_workers) {
        out.emplace_back("...");
        break;
      }
      const auto its = now_.of_threads.find(one.thread), was = before_.of_threads.find(one.thread);
      const bool is_known = was != before_.of_threads.end() && before_.from != nullptr && passed > 0;
      const auto rate = [&](auto a, auto b) { return is_known ? static_cast<double>(a - b) / passed : 0.0; };
      const look::figures& now = its->second;
      const look::figures then = is_known ? was->second : now;
      const auto runs = now_.all.find(one.runs);
      out.push_back(format("%7d %4s %5.1f %7llu %9.0f %9.0f  ", one.thread,
                           one.pool >= 0 ? std::to_string(one.pool).c_str() : "-",
                           100 * rate(now.processor, then.processor), static_cast<unsigned long long>(one.queued),
                           rate(now.jobs, then.jobs), rate(now.steals, then.steals)) +
                    (runs ? now_.names[*runs] : std::string{"-"}) +
                    (one.since
                         ? format(", for %lld ms", static_cast<long long>((steady_now() - *one.since) / 1'000'000))
                         : std::string{}));
    }
    out.emplace_back();
    return out;
  }

  std::vector<std::string> group_lines() const {
    std::vector<std::string> out{format("  TASKS  FUNCTION, WAIT  (by %s, sorted by %s%s)",
                                        grouping_names[static_cast<std::size_t>(grouped_)],
                                        order_names[static_cast<std::size_t>(sorted_)],
                                        filter_.empty() ? "" : (", filter " + filter_).substr(0, 60).c_str())};
    for (const group& one : groups_)
      out.push_back(format("%7zu  ", one.tasks.size()) + one.name +
                    (!one.name.empty() && !one.wait.empty() ? ": " : "") + one.wait);
    return out;
  }

  std::vector<std::string> task_lines() const {
    std::vector<std::string> out{"  TASKS of " + name_ + (!wait_.empty() ? ": " + wait_ : "")};
    for (const std::size_t i : tasks_of_group()) {
      const task_seen& one = now_.all.tasks[i];
      std::string line =
          "  " + hex(one.at) + ' ' + to_string(one.kind) + ' ' + now_.names[i] + ": " + to_string(one.state);
      for (std::size_t k = 0; k != one.waits.size(); ++k)
        line += (k == 0 ? " for " : " or ") + describe(one.waits[k], now_.all, *now_.from);
      out.push_back(std::move(line) + described_state(one, steady_now()));
    }
    return out;
  }

  std::vector<std::string> stack_lines() const {
    const auto found = now_.all.find(task_);
    if (!found) return {"  task " + hex(task_) + " has ended"};
    const task_seen& one = now_.all.tasks[*found];
    std::vector<std::string> out{"  STACK of " + std::string{to_string(one.kind)} + ' ' + hex(task_) + ": " +
                                 to_string(one.state) + described_state(one, steady_now())};
    for (const task_wait& what : one.waits) out.push_back("  waits for " + describe(what, now_.all, *now_.from));
    for (std::size_t i = 0; i != one.stack.size(); ++i)
      out.push_back(format("  #%-3zu ", i) + now_.from->name_of(one.stack[i]));
    for (std::size_t up = one.parent, depth = 0; up != none && depth != 64; up = now_.all.tasks[up].parent, ++depth)
      out.push_back("  in " + std::string{to_string(now_.all.tasks[up].kind)} + ' ' + now_.names[up] + " (" +
                    hex(now_.all.tasks[up].at) + ')');
    return out;
  }

  look now_, before_;
  std::vector<group> groups_;
  view shown_ = view::groups;
  grouping grouped_ = grouping::both;
  order sorted_ = order::count;
  std::size_t chosen_ = 0;
  std::string name_, wait_, filter_;  // of the group that is open; and of all
  address task_ = 0;
  bool is_typing_ = false, is_paused_ = false;
};

}  // namespace

int run_top(std::span<const std::string> arguments) {
  int pid = 0;
  bool once = false;
  for (const std::string& one : arguments) {
    if (one == "--once") {
      once = true;
    } else if (const bool is_number = !one.empty() && one.size() < 10 &&
                                      std::ranges::all_of(one, [](char c) { return '0' <= c && c <= '9'; });
               is_number && pid == 0) {
      pid = std::stoi(one);
    } else {
      throw wrong_usage{one.starts_with("--") ? "there is no option " + one : one + " is no process's number"};
    }
  }
  if (pid == 0) throw wrong_usage{"which process?"};

  picture now;
  now.look_again(pid);
  std::size_t marked;
  if (once) {
    for (const std::string& line : now.lines(1000, marked))
      if (!line.empty()) std::cout << line << '\n';
    return 0;
  }
  screen on;
  constexpr int again_after = 1000;  // milliseconds
  for (double next = seconds_now() + 1;;) {
    on.show(now.lines(screen::now().rows, marked), marked);
    const double left = next - seconds_now();
    const auto by = on.wait(left > 0 ? static_cast<int>(left * again_after) + 1 : 0);
    if (by.what != screen::key::none) {
      if (!now.press(by)) return 0;
      continue;
    }
    if (!now.is_paused()) now.look_again(pid);
    next = seconds_now() + 1;
  }
}

}  // namespace weft_tool
