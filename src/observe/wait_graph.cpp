#include "observe/wait_graph.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace weft::detail {
namespace {

using place = std::size_t;
constexpr place none = seen_root::none;

// What ends the wait of a root.
struct wait_ends {
  std::vector<place> children;
  std::vector<place> waiting;  // those that wait for this one as a holder
  std::size_t blocked_children = 0;
  place holder = none;       // it alone
  bool outside = true;       // something that is no task, or any task
  bool decides = false;      // one child that ends may have the others stopped
  bool in_time = false;      // its children are stopped when a time is over
  bool stops_below = false;  // all that stands below it may be stopped
};

class wait_graph {
 public:
  explicit wait_graph(const std::deque<seen_root>& roots) : roots_{roots}, of_(roots.size()), blocked_(roots.size()) {
    std::unordered_map<const void*, place> at;
    at.reserve(roots.size());
    for (place i = 0; i != roots.size(); ++i) at.emplace(roots[i].at, i);
    for (place i = 0; i != roots.size(); ++i) {
      const seen_root& one = roots[i];
      if (one.parent != none) of_[one.parent].children.push_back(i);
      wait_ends& its = of_[i];
      if (!one.waits) continue;
      if (one.has_children) {
        its.outside = false;
        its.decides = one.how != wait_children::ends::with_all;
        its.in_time = one.how == wait_children::ends::in_time;
      } else if (one.on.size() == 1 && one.on[0].held_by != nullptr) {
        const auto found = at.find(one.on[0].held_by);
        if (found == at.end()) continue;
        its.outside = false;
        its.holder = found->second;
        of_[found->second].waiting.push_back(i);
      }
    }
  }

  // Each root is unblocked once, and stopped once; so this takes as long as there are roots and waits.
  void eliminate() {
    for (place i = 0; i != roots_.size(); ++i)
      blocked_[i] = !of_[i].outside && roots_[i].deadline == std::chrono::steady_clock::time_point::max();
    for (place i = 0; i != roots_.size(); ++i)
      for (place child : of_[i].children) of_[i].blocked_children += blocked_[child] ? 1U : 0U;
    for (place i = 0; i != roots_.size(); ++i) {
      if (of_[i].in_time || (of_[i].decides && has_live_child(i))) may_be_stopped_below(i);
      if (blocked_[i] && !is_held_up(i)) unblock(i);
    }
    while (!changed_.empty()) {
      const place i = changed_.back();
      changed_.pop_back();
      for (place waits : of_[i].waiting)
        if (blocked_[waits]) unblock(waits);
      const place above = roots_[i].parent;
      if (above == none) continue;
      if (of_[above].decides) may_be_stopped_below(above);
      if (blocked_[above] && !is_held_up(above)) unblock(above);
    }
  }

  const std::vector<bool>& blocked() const noexcept { return blocked_; }

  // From one look to the next, the order of the list may change: that of these does not.
  auto older() const {
    return [this](place a, place b) { return roots_[a].id.generation() < roots_[b].id.generation(); };
  }

  std::vector<std::vector<place>> circles() {
    std::vector<std::vector<place>> found;
    std::vector<std::vector<place>> to(roots_.size());
    for (place i = 0; i != roots_.size(); ++i) {
      if (!blocked_[i]) continue;
      if (of_[i].holder != none) to[i].push_back(of_[i].holder);
      if (!roots_[i].has_children) continue;
      for (place child : of_[i].children)
        if (blocked_[child]) to[i].push_back(child);
      std::ranges::sort(to[i], older());
    }
    for (const std::vector<place>& component : components(to)) found.push_back(circle_in(component, to));
    return found;
  }

 private:
  bool has_live_child(place i) const { return of_[i].blocked_children != of_[i].children.size(); }

  // Whether nothing that could end its wait goes on.
  bool is_held_up(place i) const {
    const wait_ends& its = of_[i];
    if (its.holder != none) return blocked_[its.holder];
    if (its.decides) return !its.children.empty() && !has_live_child(i);
    return its.blocked_children != 0;
  }

  void unblock(place i) {
    blocked_[i] = false;
    if (roots_[i].parent != none) --of_[roots_[i].parent].blocked_children;
    changed_.push_back(i);
  }

  // All that stands below this one may be told to stop, which ends their waits.
  void may_be_stopped_below(place top) {
    std::vector<place> next{top};
    while (!next.empty()) {
      const place i = next.back();
      next.pop_back();
      if (std::exchange(of_[i].stops_below, true)) continue;
      for (place child : of_[i].children) {
        if (blocked_[child]) unblock(child);
        next.push_back(child);
      }
    }
  }

  // The strongly connected components of the blocked ones that have more than one member, or an edge to itself. Without
  // recursion: a chain of waits may be long.
  std::vector<std::vector<place>> components(const std::vector<std::vector<place>>& to) const {
    struct visit {
      place at;
      std::size_t next;
    };
    std::vector<std::vector<place>> found;
    std::vector<std::size_t> index(roots_.size(), none), low(roots_.size());
    std::vector<bool> is_open(roots_.size());
    std::vector<place> open;
    std::vector<visit> path;
    std::size_t counter = 0;
    const auto begin = [&](place at) {
      index[at] = low[at] = counter++;
      open.push_back(at);
      is_open[at] = true;
      path.push_back({at, 0});
    };
    for (place start = 0; start != roots_.size(); ++start) {
      if (!blocked_[start] || index[start] != none) continue;
      begin(start);
      while (!path.empty()) {
        const place at = path.back().at;
        if (path.back().next != to[at].size()) {
          const place next = to[at][path.back().next++];
          if (index[next] == none)
            begin(next);
          else if (is_open[next])
            low[at] = std::min(low[at], index[next]);
          continue;
        }
        path.pop_back();
        if (!path.empty()) low[path.back().at] = std::min(low[path.back().at], low[at]);
        if (low[at] != index[at]) continue;
        std::vector<place> component;
        place member;
        do {
          member = open.back();
          open.pop_back();
          is_open[member] = false;
          component.push_back(member);
        } while (member != at);
        const bool is_circle = component.size() > 1 || std::find(to[at].begin(), to[at].end(), at) != to[at].end();
        if (is_circle) found.push_back(std::move(component));
      }
    }
    return found;
  }

  // A shortest circle through the oldest member of a component, and through older ones where there are several: so that it
  // is the same one at each look.
  std::vector<place> circle_in(const std::vector<place>& component, const std::vector<std::vector<place>>& to) const {
    const place first = *std::ranges::min_element(component, older());
    const std::unordered_map<place, int> inside = [&] {
      std::unordered_map<place, int> all;
      for (place one : component) all.emplace(one, 0);
      return all;
    }();
    std::unordered_map<place, place> from;
    std::deque<place> next{first};
    for (;;) {
      const place at = next.front();
      next.pop_front();
      for (place further : to[at]) {
        if (further == first) {
          std::vector<place> circle;
          for (place one = at; one != first; one = from[one]) circle.push_back(one);
          circle.push_back(first);
          std::reverse(circle.begin(), circle.end());
          return circle;
        }
        if (inside.contains(further) && from.emplace(further, at).second) next.push_back(further);
      }
    }
  }

  const std::deque<seen_root>& roots_;
  std::vector<wait_ends> of_;
  std::vector<bool> blocked_;
  std::vector<place> changed_;  // those that were unblocked, and whose dependents were not looked at
};

// What a task brings about, and no clock, system or other library.
bool is_of_tasks(std::string_view what) noexcept {
  constexpr std::string_view names[] = {"mutex",
                                        "shared_mutex",
                                        "shared_mutex, to upgrade",
                                        "semaphore",
                                        "event",
                                        "auto_event",
                                        "latch",
                                        "barrier",
                                        "condition_variable",
                                        "once",
                                        "sequence_barrier",
                                        "channel, to send",
                                        "channel, to receive",
                                        "broadcast, to send",
                                        "broadcast, to receive",
                                        "watch, to receive",
                                        "room for one more fork in a scope",
                                        "fork",
                                        "shared_task",
                                        "turn to call the function of a pipe",
                                        "entry of a registry"};
  return std::find(std::begin(names), std::end(names), what) != std::end(names);
}

}  // namespace

std::vector<std::vector<std::size_t>> circles_of(const std::deque<seen_root>& roots) {
  wait_graph all{roots};
  all.eliminate();
  return all.circles();
}

std::vector<bool> blocked_of(const std::deque<seen_root>& roots) {
  wait_graph all{roots};
  all.eliminate();
  return all.blocked();
}

bool is_stuck(const std::deque<seen_root>& roots) {
  bool any = false;
  for (const seen_root& one : roots) {
    if (!one.waits || one.deadline != std::chrono::steady_clock::time_point::max()) return false;
    if (one.has_children) {
      if (one.how == wait_children::ends::in_time) return false;
      continue;
    }
    if (one.on.empty()) return false;
    for (const wait_subject& what : one.on)
      if (!is_of_tasks(what.what)) return false;
    any = true;
  }
  return any;
}

}  // namespace weft::detail
