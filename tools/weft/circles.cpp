// Who waits for each other, so that none of them will ever go on.
#include <algorithm>
#include <vector>

#include "tasks.hpp"

namespace weft_tool {

// As the library's wait_graph: the largest set of waits that only its own members can end, and the circles in it.
void find_circles(tasks_seen& all) {
  const std::vector<task_seen>& tasks = all.tasks;
  std::vector<std::size_t> holder(tasks.size(), none);
  std::vector<std::vector<std::size_t>> children(tasks.size());
  std::vector<bool> blocked(tasks.size());
  for (std::size_t i = 0; i != tasks.size(); ++i) {
    const task_seen& one = tasks[i];
    if (one.parent != none) children[one.parent].push_back(i);
    if (one.state != task_state::waiting || one.deadline != task_seen::max_deadline) continue;
    if (!one.has_children && one.waits.size() == 1)
      if (const auto found = all.find(one.waits[0].held_by)) holder[i] = *found;
    blocked[i] = one.has_children || holder[i] != none;
  }
  const auto any_goes_on = [&](std::size_t i) {
    return std::ranges::any_of(children[i], [&](std::size_t child) { return !blocked[child]; });
  };
  const auto is_held_up = [&](std::size_t i) {
    if (holder[i] != none) return static_cast<bool>(blocked[holder[i]]);
    if (tasks[i].decides) return !children[i].empty() && !any_goes_on(i);
    return std::ranges::any_of(children[i], [&](std::size_t child) { return static_cast<bool>(blocked[child]); });
  };
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<bool> may_be_stopped(tasks.size());
    for (std::size_t i = 0; i != tasks.size(); ++i)
      if (const std::size_t above = tasks[i].parent; above != none)
        may_be_stopped[i] =
            may_be_stopped[above] || tasks[above].in_time || (tasks[above].decides && any_goes_on(above));
    for (std::size_t i = 0; i != tasks.size(); ++i)
      if (blocked[i] && (may_be_stopped[i] || !is_held_up(i))) {
        blocked[i] = false;
        changed = true;
      }
  }
  // Each blocked one leads to a next one, so each path ends in a circle; of several ways a join could go, the first.
  std::vector<std::size_t> seen_in(tasks.size(), none);
  for (std::size_t start = 0; start != tasks.size(); ++start) {
    std::vector<std::size_t> path;
    std::size_t at = start;
    while (at != none && blocked[at] && seen_in[at] == none) {
      seen_in[at] = start;
      path.push_back(at);
      if (holder[at] != none) {
        at = holder[at];
      } else {
        const auto next =
            std::ranges::find_if(children[at], [&](std::size_t one) { return static_cast<bool>(blocked[one]); });
        at = next != children[at].end() ? *next : none;
      }
    }
    if (at == none || !blocked[at] || seen_in[at] != start) continue;
    std::vector<std::size_t> circle{std::ranges::find(path, at), path.end()};
    std::ranges::rotate(circle, std::ranges::min_element(circle));
    all.circles.push_back(std::move(circle));
  }
}

}  // namespace weft_tool
