// What TLS comes to when system calls fail: each of a handshake, and of all that follows, with each error that the system may give
// there. What only takes longer changes nothing; any other error ends the session with that, and no side takes a part for all.
#include <weft/tls.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include <weft/net.hpp>

#include "net/fault_sweep.hpp"
#include "net/faults.hpp"
#include "support/sweep.hpp"
#include "support/system_calls.hpp"
#include "tls/certificates.hpp"
#include "tls/pairs.hpp"

namespace {

using namespace test::in_sweeps;
using test::call;
using test::place;
using weft::net::stream;

const weft::tls::client_context& client() {
  static const weft::tls::client_context one{{.trust = test::root().trusted(), .resumes = false}};
  return one;
}
const weft::tls::server_context& server() {
  static const weft::tls::server_context one = [] {
    const test::credentials own = test::root().issue();
    return weft::tls::server_context{{.certificate = own.shown(), .resumes = false}};
  }();
  return one;
}

constexpr std::string_view letters = "abcdefghij";

template <class By>
struct talks : test::scenario {
  static constexpr std::array those{call::recv, call::send};
  stream here, there;
  std::string got_here, got_there;
  std::vector<std::error_code> failures_there;  // of another thread, perhaps
  bool here_has_ended = false, there_has_ended = false;

  talks() {
    const test::own_listener at;
    const test::own_socket raw = test::connected_to(at.port);
    there = stream::adopt(test::real::__real_accept4(at.number(), nullptr, nullptr, SOCK_CLOEXEC));
    here = stream::adopt(::dup(raw.number()));
  }
  part<By> writes(const weft::tls::stream<>& to) {
    co_await to.write(letters.substr(0, 5));
    co_await to.write(letters.substr(5));
    co_await to.shutdown();
  }
  part<By> reads(const weft::tls::stream<>& from, std::string& into, bool& has_ended) {
    std::array<std::byte, 4> buffer;
    for (;;) {
      const std::size_t got = co_await from.read(buffer);
      if (got == 0) break;
      into.append(reinterpret_cast<const char*>(buffer.data()), got);
    }
    has_ended = true;
  }
  part<By> connects() {
    try {
      auto connecting = weft::tls::connect(client(), std::move(here), "here.test");
      const weft::tls::stream<> one = co_await std::move(connecting);
      co_await together(writes(one), reads(one, got_here, here_has_ended));
    } catch (const weft::error& failed) {
      failures.push_back(failed.code());
    }
  }
  part<By> accepts() {
    try {
      auto accepting = weft::tls::accept(server(), std::move(there));
      const weft::tls::stream<> one = co_await std::move(accepting);
      co_await together(writes(one), reads(one, got_there, there_has_ended));
    } catch (const weft::error& failed) {
      failures_there.push_back(failed.code());
    }
  }
  part<By> run() { co_await together(connects(), accepts()); }

  void check(std::error_code failed) const {
    EXPECT_TRUE(letters.starts_with(got_here)) << got_here;
    EXPECT_TRUE(letters.starts_with(got_there)) << got_there;
    EXPECT_TRUE(!here_has_ended || got_here == letters) << "an end that was none has come here";
    EXPECT_TRUE(!there_has_ended || got_there == letters) << "an end that was none has come there";
    std::vector<std::error_code> all = failures;
    all.insert(all.end(), failures_there.begin(), failures_there.end());
    if (!failed) {
      EXPECT_TRUE(all.empty()) << all.front().message();
      EXPECT_TRUE(here_has_ended && there_has_ended);
      return;
    }
    bool was_told = false;
    for (const std::error_code& one : all) {
      was_told = was_told || one == failed;
      const bool is_of_the_other =
          one == weft::tls::errc::truncated || one == weft::errc::closed || one == std::errc::connection_reset;
      EXPECT_TRUE(one == failed || is_of_the_other) << one.message();
    }
    EXPECT_TRUE(was_told) << failed.message();
  }
};

class tls_faults : public testing::TestWithParam<place> {};
INSTANTIATE_TEST_SUITE_P(on, tls_faults, testing::ValuesIn(test::places()), test::name_of_place);

// One ring does nothing that two do not. Where each call is instrumented, without a loop and on the last of them.
TEST_P(tls_faults, end_a_session_and_never_cut_it_unseen) {
  const place where = GetParam();
  if (where == place::uring) return;
  if (test::rounds(10) != 10 && where != place::kit && where != test::places().back()) return;
  test::sweep_in<talks<test::by_task>>(where, "tasks");
}

// By which a read that has failed may be repeated, and a write may not.
WEFT_TEST("tls_faults: a read that fails once goes on, a write does not") {
  auto [here, there] = co_await test::handshake(client(), server());
  co_await there.write("all");
  {
    const test::injection one{{call::recv, {ENOMEM}}, 0};
    EXPECT_EQ((co_await weft::as_result(test::read_some(here, 8))).error(), std::errc::not_enough_memory);
  }
  EXPECT_EQ(co_await test::read_some(here, 8), "all");
  {
    const test::injection one{{call::send, {ENOBUFS}}, 0};
    EXPECT_EQ((co_await weft::as_result(here.write("x"))).error(), std::errc::no_buffer_space);
  }
  EXPECT_EQ((co_await weft::as_result(here.write("x"))).error(), weft::errc::closed);
  EXPECT_EQ((co_await weft::as_result(here.shutdown())).error(), weft::errc::closed);
  co_await there.write("and more");
  EXPECT_EQ(co_await test::read_some(here, 8), "and more");
}

// A client may ask for records of 512 bytes.
WEFT_TEST("tls_faults: a write is two sends at most, however small the peer has its records") {
  test::with_number raw = test::connected_to_number();
  const std::string all(16'000, 'x');
  std::string got;
  std::jthread client{[number = raw.there, &got, &all] {
    const test::openssl_peer peer{number};
    SSL_set_tlsext_max_fragment_length(peer.get(), TLSEXT_max_fragment_length_512);
    if (!peer.handshake()) return;
    while (got.size() != 1 + all.size()) {
      const std::string more = peer.read();
      if (more.empty()) return;
      got += more;
    }
  }};
  auto accepting = weft::tls::accept(server(), std::move(raw.here));
  const auto there = co_await std::move(accepting);
  co_await there.write("y");  // with session tickets
  {
    const test::injection third{{call::send, {EPIPE}}, 2};
    co_await there.write(all);
    EXPECT_EQ(third.struck(), 0);
  }
  client.join();
  EXPECT_TRUE(got == "y" + all);
}

}  // namespace
