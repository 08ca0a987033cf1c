#include <weft/detail/async_stack.hpp>
#include <weft/observe.hpp>

namespace weft {
namespace {

std::vector<async_frame> frames_of(const detail::root& from, const void* asked_by) {
  std::vector<async_frame> stack;
  detail::call_list calls{.after = asked_by};
  detail::stack_walk walk{from, calls};
  while (const void* code = walk.next()) stack.emplace_back(code);
  return stack;
}

}  // namespace

std::vector<async_frame> async_stack() {
  const detail::root* self = detail::current_root();
  return self != nullptr ? frames_of(*self, __builtin_return_address(0)) : std::vector<async_frame>{};
}

std::vector<async_frame> async_stack(detail::root& suspended) {
  const detail::held_wait held{suspended};
  return held ? frames_of(suspended, nullptr) : std::vector<async_frame>{};
}

std::vector<wait_subject> waits_on(detail::root& suspended) {
  detail::wait_subjects found;
  {
    const detail::held_wait held{suspended};
    held.tell(found);
  }
  return {found.all, found.all + found.count};
}

}  // namespace weft
