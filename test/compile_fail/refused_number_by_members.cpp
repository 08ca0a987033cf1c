// Each member function says it of what it does not take.
// expect: this can't be awaited
// expect: a fork takes an awaitable, or a function
// expect: \|   p\.run\(3\);
// expect: \|   r\.run\(3\);
// expect: \|   s\.fork\(3\);
// expect: \|   s\.fork_here\(3\);
// expect: \|   s\.fork_on\(ex, 3\);
// expect: \|   s\.fork_when_room\(3\);
// expect: \|   g\.fork\(s, 3\);
// expect: \|   g\.fork\(\{\}, s, 3\);
// at-most: 80 lines
#include <weft/weft.hpp>

void all(weft::executor& ex, weft::pool& p, weft::runtime& r, weft::scope& s, weft::registry& g) {
  p.run(3);
  r.run(3);
  s.fork(3);
  s.fork_here(3);
  s.fork_on(ex, 3);
  s.fork_when_room(3);
  g.fork(s, 3);
  g.fork({}, s, 3);
}
