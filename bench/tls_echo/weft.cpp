#include <array>
#include <span>
#include <utility>
#include <weft/tls.hpp>
#include <weft/weft.hpp>

#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace {

weft::task<> echo(weft::tls::stream<> peer) {
  std::array<std::byte, bench::largest_message> buffer;
  while (const std::size_t size = co_await peer.read(buffer)) co_await peer.write(std::span{buffer}.first(size));
}

weft::task<> echo_all(const weft::tls::server_context& context) {
  // In the runtime, so that the listener waits there and not with a thread of its own.
  co_await weft::tls::serve(context, weft::net::listener::adopt(bench::listening_socket), echo);
}

}  // namespace

int main(int, char** words) {
  weft::runtime rt{{.threads = 1}};
  const weft::tls::server_context context{
      {.certificate = {.chain = weft::tls::pem::file(words[4]), .key = weft::tls::pem::file(words[5])}}};
  rt.run(echo_all(context));
}
