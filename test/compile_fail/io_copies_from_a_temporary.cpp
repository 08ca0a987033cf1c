// expect: expects an lvalue for 1st argument|cannot bind non-const lvalue reference
#include <weft/io.hpp>

weft::task<> copies(weft::io::pipe_writer& to) { co_await weft::io::copy(weft::io::pipe().from, to); }
