#include "observe/wait_graph.hpp"

#include <chrono>
#include <unordered_map>

#include "observe/wait_circles.hpp"

namespace weft::detail {
namespace {

std::vector<wait_node> nodes_of(const std::deque<seen_root>& roots) {
  std::unordered_map<const void*, std::size_t> at;
  at.reserve(roots.size());
  for (std::size_t i = 0; i != roots.size(); ++i) at.emplace(roots[i].at, i);
  std::vector<wait_node> nodes(roots.size());
  for (std::size_t i = 0; i != roots.size(); ++i) {
    const seen_root& one = roots[i];
    wait_node& its = nodes[i];
    its.parent = one.parent;
    its.age = one.id.generation();
    its.has_deadline = one.deadline != std::chrono::steady_clock::time_point::max();
    if (!one.waits) continue;
    if (one.has_children) {
      its.waits_for_children = true;
      its.decides = one.how != wait_children::ends::with_all;
      its.in_time = one.how == wait_children::ends::in_time;
    } else if (one.on.size() == 1 && one.on[0].held_by != nullptr) {
      const auto found = at.find(one.on[0].held_by);
      if (found != at.end()) its.holder = found->second;
    }
  }
  return nodes;
}

}  // namespace

std::vector<std::vector<std::size_t>> circles_of(const std::deque<seen_root>& roots) {
  const std::vector<wait_node> nodes = nodes_of(roots);
  return wait_circles{nodes}.circles();
}

std::vector<bool> blocked_of(const std::deque<seen_root>& roots) {
  const std::vector<wait_node> nodes = nodes_of(roots);
  return wait_circles{nodes}.blocked();
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
