#include <weft/detail/core/async_stack.hpp>
#include <weft/observe.hpp>

namespace weft::detail {
namespace {

items<async_frame> frames_of(const root& from, const void* asked_by) {
  std::vector<async_frame> stack;
  call_list calls{.after = asked_by};
  stack_walk walk{from, calls};
  while (const void* code = walk.next()) stack.emplace_back(code);
  return {stack.data(), stack.data() + stack.size()};
}

}  // namespace

items<async_frame> stack_here() {
  const root* self = current_root();
  return self != nullptr ? frames_of(*self, __builtin_return_address(0)) : items<async_frame>{};
}

items<async_frame> stack_of(root& suspended) {
  const held_wait held{suspended};
  return held ? frames_of(suspended, nullptr) : items<async_frame>{};
}

items<wait_subject> subjects_of(root& suspended) {
  wait_subjects found;
  {
    const held_wait held{suspended};
    held.tell(found);
  }
  return {found.all, found.all + found.count};
}

}  // namespace weft::detail
