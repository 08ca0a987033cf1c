// expect: no member named .send
#include <weft/channel.hpp>
#include <weft/channel_ends.hpp>

auto sends(weft::receiver<int> from) { return from.send(1); }
