#include <weft/executor_set.hpp>

namespace weft::detail {

const char executors_key = 0;

executor* find_typed_executor(const void* type) noexcept {
  for (const typed_executors* bound = bound_executors(); bound != nullptr; bound = bound->outer)
    for (std::size_t i = 0; i != bound->count; ++i)
      if (bound->first[i].type == type) return bound->first[i].one;
  return nullptr;
}

executor& bound_executor(const void* type) noexcept {
  executor* const found = find_typed_executor(type);
  WEFT_EXPECTS(found != nullptr,
               "executor_of was asked for a type of which no executor is bound here: with_executors binds them");
  return *found;
}

}  // namespace weft::detail
