// Each of these members says it of a call that gives nothing.
// expect[clang]: \| struct void_is_no_awaitable;  // a call that gives void can't be awaited
// expect[clang]: \|   workers.run\(f\(\)\);
// expect[clang]: \|   rt.run\(f\(\)\);
// expect[clang]: \|   s.fork\(f\(\)\);
// expect[clang]: \|   s.fork_here\(f\(\)\);
// expect[clang]: \|   s.fork_when_room\(f\(\)\);
// expect[gcc]: invalid use of void expression
// at-most: 50 lines
#include <weft/weft.hpp>

void f();
void all(weft::pool& workers, weft::runtime& rt, weft::scope& s) {
  workers.run(f());
  rt.run(f());
  s.fork(f());
  s.fork_here(f());
  s.fork_when_room(f());
}
