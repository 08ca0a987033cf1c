// expect[clang]: no matching member function for call to 'set_value'
// expect[gcc]: no matching function for call to .*set_value
#include <weft/future.hpp>

void sets(weft::promise<const int&>& promise) { promise.set_value(1); }
