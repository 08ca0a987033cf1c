#include "core/walk_gate.hpp"

namespace weft::detail { constinit passing_gate walk_gate::the_one; }  // namespace weft::detail
