#include <weft/observe.hpp>

#include <memory>
#include <weft/detail/core/async_stack.hpp>

#include "observe/root_walk.hpp"

namespace weft::detail {
namespace {

// What is found of one root; null: it does not wait, or is not there.
std::unique_ptr<seen_root> look_for(task_id id) {
  if (!id) return nullptr;
  const auto its = root_walk::make({.only = id});
  root_walk& walk = *its;
  walk.run();
  return walk.roots.empty() ? nullptr : std::make_unique<seen_root>(std::move(walk.roots.front()));
}

}  // namespace

items<async_frame> stack_here() {
  const root* const self = current_root();
  if (self == nullptr) return {};
  std::vector<async_frame> stack;
  call_list calls{.after = __builtin_return_address(0)};
  stack_walk walk{*self, calls};
  while (const void* code = walk.next()) stack.emplace_back(code);
  return {stack.data(), stack.data() + stack.size()};
}

items<async_frame> stack_of(task_id suspended) {
  const auto found = look_for(suspended);
  return found ? std::move(found->stack) : items<async_frame>{};
}

items<wait_subject> subjects_of(task_id suspended) {
  const auto found = look_for(suspended);
  return found ? std::move(found->on) : items<wait_subject>{};
}

}  // namespace weft::detail
