// Who waits for each other, so that none of them will ever go on.
//
// A wait is blocked if all that could end it is blocked, too. Those that could: of a mutex, a fork or a shared task, its
// holder; of a wait for children, the children, and where one of them may have the others stopped, any of them. Whatever else
// could end a wait (a clock, a callback, another thread, a stop at a deadline) is outside of this, and a wait that has such
// an end is not blocked. A stop that the program might still request is no end: nobody may be there to request it.
//
// All that wait for what has a known end are taken to be blocked; then those are taken out whose end is not blocked, until none
// is left that can be taken out. So what stays is the largest set of waits that only its own members can end. The circles in
// it are its strongly connected components.
//
// Inline, since the `weft` program, which does not link the library, finds circles in other processes by it.
//
// Source: R. Tarjan, "Depth-first search and linear graph algorithms", SIAM Journal on Computing 1 (1972).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft::detail {

/// What of a root matters here. One that does not wait has neither a holder nor children that it waits for.
struct wait_node {
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  std::size_t parent = none;        // places in the list
  std::size_t holder = none;        // it alone ends this wait
  std::uint64_t age = 0;            // the smaller, the older
  bool waits_for_children = false;  // and these alone end the wait
  bool decides = false;             // one child that ends may have the others stopped
  bool in_time = false;             // its children are stopped when a time is over
  bool has_deadline = false;
};

/// The largest set of roots that only its own members can wake, and the circles in it.
class wait_circles {
  using place = std::size_t;
  static constexpr place none = wait_node::none;

  // From one look to the next, the order of the list may change: that of these does not.
  auto older() const {
    return [this](place a, place b) { return roots_[a].age < roots_[b].age; };
  }

 public:
  /// Of nodes that stay where they are. Throws std::bad_alloc, as all here.
  explicit wait_circles(std::span<const wait_node> roots) : roots_{roots}, of_(roots.size()), blocked_(roots.size()) {
    for (place i = 0; i != roots.size(); ++i) {
      if (roots[i].parent != none) of_[roots[i].parent].children.push_back(i);
      if (roots[i].holder != none) of_[roots[i].holder].waiting.push_back(i);
    }
    eliminate();
  }

  /// Of each, whether only what is blocked, too, could end its wait.
  const std::vector<bool>& blocked() const noexcept { return blocked_; }

  /// One circle for each component, by the places of its members.
  std::vector<std::vector<place>> circles() {
    std::vector<std::vector<place>> found;
    std::vector<std::vector<place>> to(roots_.size());
    for (place i = 0; i != roots_.size(); ++i) {
      if (!blocked_[i]) continue;
      if (roots_[i].holder != none) to[i].push_back(roots_[i].holder);
      if (!roots_[i].waits_for_children) continue;
      for (place child : of_[i].children)
        if (blocked_[child]) to[i].push_back(child);
      std::ranges::sort(to[i], older());
    }
    for (const std::vector<place>& component : components(to)) found.push_back(circle_in(component, to));
    return found;
  }

 private:
  struct ends {
    std::vector<place> children;
    std::vector<place> waiting;  // those that wait for this one as a holder
    std::size_t blocked_children = 0;
    bool stops_below = false;  // all that stands below it may be stopped
  };

  // Each root is unblocked once, and stopped once; so this takes as long as there are roots and waits.
  void eliminate() {
    for (place i = 0; i != roots_.size(); ++i)
      blocked_[i] = (roots_[i].holder != none || roots_[i].waits_for_children) && !roots_[i].has_deadline;
    for (place i = 0; i != roots_.size(); ++i)
      for (place child : of_[i].children) of_[i].blocked_children += blocked_[child] ? 1U : 0U;
    for (place i = 0; i != roots_.size(); ++i) {
      if (roots_[i].in_time || (roots_[i].decides && has_live_child(i))) may_be_stopped_below(i);
      if (blocked_[i] && !is_held_up(i)) unblock(i);
    }
    while (!changed_.empty()) {
      const place i = changed_.back();
      changed_.pop_back();
      for (place waits : of_[i].waiting)
        if (blocked_[waits]) unblock(waits);
      const place above = roots_[i].parent;
      if (above == none) continue;
      if (roots_[above].decides) may_be_stopped_below(above);
      if (blocked_[above] && !is_held_up(above)) unblock(above);
    }
  }

  bool has_live_child(place i) const { return of_[i].blocked_children != of_[i].children.size(); }

  // Whether nothing that could end its wait goes on.
  bool is_held_up(place i) const {
    if (roots_[i].holder != none) return blocked_[roots_[i].holder];
    if (roots_[i].decides) return !of_[i].children.empty() && !has_live_child(i);
    return of_[i].blocked_children != 0;
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

  std::span<const wait_node> roots_;
  std::vector<ends> of_;
  std::vector<bool> blocked_;
  std::vector<place> changed_;  // those that were unblocked, and whose dependents were not looked at
};

/// Whether this wait is for what a task brings about, and no clock, system or other library.
inline bool is_of_tasks(std::string_view what) noexcept {
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
  return std::ranges::find(names, what) != std::end(names);
}

}  // namespace weft::detail
