// flags: -fno-exceptions
// expect: weft needs exceptions
#include <weft/task.hpp>

int main() {}
