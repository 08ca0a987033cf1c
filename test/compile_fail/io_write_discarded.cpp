// expect-warning: a task does nothing until it is awaited
#include <weft/io.hpp>

void writes(weft::io::buffered_writer<weft::io::pipe_writer&>& out) { out.print("x = ", 1, "\n"); }
