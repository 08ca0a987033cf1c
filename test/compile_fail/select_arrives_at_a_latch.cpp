// expect: arrive_and_wait\(\) has arrived whichever case a select chooses
#include <weft/channel.hpp>
#include <weft/select.hpp>

auto meets(weft::latch& l, weft::channel<int>& c) { return weft::select(weft::on(l.arrive_and_wait()), on_receive(c)); }
