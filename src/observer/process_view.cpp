// What lives in the process, as texts.
#include "observer/answers.hpp"

namespace weft::detail {

struct process_view::parts {};

process_view::process_view() = default;
process_view::~process_view() = default;

std::string process_view::json() const { return "{}"; }
std::string process_view::dot() const { return "digraph weft {}\n"; }
std::string process_view::text() const { return {}; }
std::vector<told_deadlock> process_view::deadlocks() const { return {}; }

}  // namespace weft::detail
