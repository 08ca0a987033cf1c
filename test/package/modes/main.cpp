// Runs what part.cpp has, once or, with TWO, as two parts that were built in different ways.
#include <cstdio>

namespace one { int use(); }
#ifdef TWO
namespace other { int use(); }
#endif

int main() {
  int wrong = one::use();
#ifdef TWO
  if (wrong == 0) wrong = other::use();
#endif
  if (wrong != 0) std::printf("part.cpp:%d: not so\n", wrong);
  return wrong != 0;
}
