// weft-bench: measures weft beside its peers, and shows it as a table, as JSON and as one HTML page.
#pragma once

namespace bench {

/// The whole program; tests call it, too.
///
/// Returns the exit status: 0; 1 where a program crashed, hung or gave a wrong result; 2 where the command line or a file
/// makes no sense. Either has its sentence on stderr or in the table.
int run_driver(int argc, const char* const* argv);

}  // namespace bench
