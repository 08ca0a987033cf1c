// Each member function says it of what it does not take.
// expect: a task is awaited once, as an rvalue: pass std::move\(t\)
// expect: \|   p\.run\(t\);
// expect: \|   r\.run\(t\);
// expect: \|   s\.fork\(t\);
// expect: \|   s\.fork_here\(t\);
// expect: \|   s\.fork_on\(ex, t\);
// expect: \|   s\.fork_when_room\(t\);
// expect: \|   g\.fork\(s, t\);
// expect: \|   g\.fork\(\{\}, s, t\);
// at-most: 80 lines
#include <weft/weft.hpp>

void all(weft::executor& ex, weft::pool& p, weft::runtime& r, weft::scope& s, weft::registry& g, weft::task<>& t) {
  p.run(t);
  r.run(t);
  s.fork(t);
  s.fork_here(t);
  s.fork_on(ex, t);
  s.fork_when_room(t);
  g.fork(s, t);
  g.fork({}, s, t);
}
