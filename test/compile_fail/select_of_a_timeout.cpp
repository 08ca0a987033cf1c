// expect: a timeout runs beside the other cases, and would lose what it has received or taken
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/select.hpp>

auto limits(weft::channel<int>& a, weft::channel<int>& b) {
  return weft::select(weft::on(weft::timeout(std::chrono::seconds{1}, a.receive())), on_receive(b));
}
