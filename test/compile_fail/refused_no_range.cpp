// Each function of ranges says it of what it does not take.
// expect: a range of awaitables is taken here, and this is no range
// expect: \|   weft::when_some\(1, 3\);
// expect: \|   weft::windowed\(2, 3\);
// expect: \|   weft::as_completed\(3\);
// expect: \|   static_cast<void>\(3 \| weft::windowed\(2\)\);
// expect: \|   static_cast<void>\(3 \| weft::when\(2\)\);
// at-most: 50 lines
#include <weft/weft.hpp>

void all() {
  weft::when_some(1, 3);
  weft::windowed(2, 3);
  weft::as_completed(3);
  static_cast<void>(3 | weft::windowed(2));
  static_cast<void>(3 | weft::when(2));
}
