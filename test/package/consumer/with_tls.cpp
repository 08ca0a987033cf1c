// A client's context, and a handshake that a pipe's end ends: weft::tls is found, and links.
#include <cstdio>
#include <span>
#include <string_view>
#include <utility>
#include <weft/io.hpp>
#include <weft/tls.hpp>

namespace {

struct duplex {
  weft::io::pipe_reader in;
  weft::io::pipe_writer out;
  auto read(std::span<std::byte> into) const { return in.read(into); }
  auto write_some(std::span<const std::byte> data) const { return out.write_some(data); }
  auto write(std::span<const std::byte> data) const { return out.write(data); }
};

}  // namespace

int main() {
  weft::io::pipe_ends to_here = weft::io::pipe(), from_here = weft::io::pipe();
  to_here.to.close();
  const weft::tls::client_context context{{.peer = weft::tls::verify::nothing}};
  const auto how = weft::sync_wait(weft::as_result(
      weft::tls::connect(context, duplex{std::move(to_here.from), std::move(from_here.to)}, "here.test")));
  if (how.error() == weft::tls::errc::truncated) return 0;
  std::puts("the handshake has ended otherwise");
  return 1;
}
