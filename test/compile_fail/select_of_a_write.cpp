// expect: a write as a case would have sent a part although another case is chosen
#include <weft/channel.hpp>
#include <weft/net.hpp>
#include <weft/select.hpp>

auto writes(const weft::net::stream& peer, weft::channel<int>& other) {
  return weft::select(weft::on(peer.write("x")), on_receive(other));
}
