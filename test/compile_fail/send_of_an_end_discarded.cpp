// expect-warning: nothing happens until it is awaited
#include <weft/channel.hpp>
#include <weft/channel_ends.hpp>

void sends(weft::sender<int>& numbers) { numbers.send(1); }
