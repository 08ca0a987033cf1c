// expect-warning: a generator runs only while it is iterated
#include <weft/generator.hpp>

weft::generator<int> one() { co_yield 1; }

int main() { one(); }
