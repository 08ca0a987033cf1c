#include "core/end_causes.hpp"

#include "core/claim.hpp"

namespace weft::detail {

void note_end(root& self, const waiter* in) noexcept {
  cause_list& noted = this_worker().ends;
  noted.begin(&self);
  if (in != nullptr && !self.stop_requested()) stop_here::tell_causes(*in, noted);
}

void note_end(root& self, std::span<const stop_cause> causes) noexcept {
  cause_list& noted = this_worker().ends;
  noted.begin(&self);
  for (const stop_cause& one : causes) noted.add(one);
}

}  // namespace weft::detail
