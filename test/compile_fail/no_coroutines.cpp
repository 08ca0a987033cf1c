// flags: -std=c++17
// expect[clang]: weft needs C\+\+20
#include <weft/detail/base/config.hpp>

int main() {}
