// expect-warning: nodiscard
#include <weft/future.hpp>

void drops(weft::promise<int>& promise) { promise.get_future(); }
