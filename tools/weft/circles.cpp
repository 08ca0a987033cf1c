// Who waits for each other, so that none of them will ever go on.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "observe/wait_circles.hpp"
#include "target.hpp"
#include "tasks.hpp"

namespace weft_tool {

namespace {

using weft::detail::wait_node;

// As the library's is_stuck() of a snapshot. A case of a select that is not known counts as none of a task's.
bool are_all_asleep(const tasks_seen& all) {
  bool any = false;
  for (const task_seen& one : all.tasks) {
    if (one.state != task_state::waiting || one.deadline != task_seen::max_deadline || one.in_time) return false;
    if (one.has_children) continue;
    if (one.waits.empty()) return false;
    for (const task_wait& what : one.waits)
      if (!weft::detail::is_of_tasks(what.what)) return false;
    any = true;
  }
  return any && all.is_complete;
}

// Whether `one` waits as it did.
bool is_same_wait(const task_seen& one, const task_seen& before) {
  const auto is_same = [](const task_wait& a, const task_wait& b) {
    return a.what == b.what && a.at == b.at && a.held_by == b.held_by;
  };
  return one.state == task_state::waiting && before.state == task_state::waiting && one.ticket == before.ticket &&
         one.function == before.function && one.has_children == before.has_children &&
         std::ranges::equal(one.waits, before.waits, is_same);
}

}  // namespace

// Which task is the older one is not known from outside. The lower address takes its place, which is the same at each look.
void find_circles(tasks_seen& all) {
  std::vector<wait_node> nodes(all.tasks.size());
  for (std::size_t i = 0; i != nodes.size(); ++i) {
    const task_seen& one = all.tasks[i];
    wait_node& its = nodes[i];
    its.parent = one.parent;
    its.age = one.at;
    its.has_deadline = one.deadline != task_seen::max_deadline;
    if (one.state != task_state::waiting) continue;
    if (one.has_children) {
      its.waits_for_children = true;
      its.decides = one.decides;
      its.in_time = one.in_time;
    } else if (one.waits.size() == 1) {
      its.holder = all.find(one.waits[0].held_by).value_or(wait_node::none);
    }
  }
  weft::detail::wait_circles found{nodes};
  for (std::size_t i = 0; i != nodes.size(); ++i) all.tasks[i].is_blocked = found.blocked()[i];
  all.circles = found.circles();
  all.is_stuck = are_all_asleep(all);
}

void look_again_if_doubtful(std::unique_ptr<target>& from, tasks_seen& all, const look_options& how) {
  if (from->late_reads() == 0 || (all.circles.empty() && !all.is_stuck)) return;
  auto second = open_process(from->pid, from->late_pages());
  tasks_seen now = look_at(*second, how);
  // What both looks have found was so at one moment between them.
  if (second->late_reads() != 0) {
    const auto is_as_before = [&](const task_seen& one) {
      const auto before = all.find(one.at);
      return before && is_same_wait(one, all.tasks[*before]);
    };
    std::erase_if(now.circles, [&](const std::vector<std::size_t>& circle) {
      return !std::ranges::all_of(circle, [&](std::size_t i) {
        const auto before = all.find(now.tasks[i].at);
        return before && all.tasks[*before].is_blocked && is_as_before(now.tasks[i]);
      });
    });
    now.is_stuck = now.is_stuck && all.is_stuck && now.tasks.size() == all.tasks.size() &&
                   std::ranges::all_of(now.tasks, is_as_before);
  }
  from = std::move(second);
  all = std::move(now);
}

}  // namespace weft_tool
