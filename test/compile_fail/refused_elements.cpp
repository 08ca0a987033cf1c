// Each function of ranges says it of what it does not take.
// expect: the elements of this range can't be awaited
// expect: \|   weft::when_some\(1, v\);
// expect: \|   weft::windowed\(2, v\);
// expect: \|   weft::as_completed\(v\);
// expect: \|   static_cast<void>\(v \| weft::windowed\(2\)\);
// expect: \|   static_cast<void>\(v \| weft::when\(2\)\);
// at-most: 50 lines
#include <weft/weft.hpp>

void all(std::vector<int>& v) {
  weft::when_some(1, v);
  weft::windowed(2, v);
  weft::as_completed(v);
  static_cast<void>(v | weft::windowed(2));
  static_cast<void>(v | weft::when(2));
}
