// expect: does not satisfy 'printable'|printable<.*> .*unsatisfied|printable
#include <weft/io.hpp>

weft::task<> prints(weft::io::buffered_writer<weft::io::pipe_writer&>& out, int& number) {
  co_await out.print(&number);
}
