// What datagrams and descriptors that pass come to when system calls fail, as net_faults_test.cpp has it for streams.
#include "support/weft_test.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/datagram.hpp>
#include <weft/net.hpp>
#include <weft/select.hpp>
#include <weft/unix.hpp>

#include "net/fault_sweep.hpp"
#include "net/faults.hpp"
#include "support/sweep.hpp"
#include "support/system_calls.hpp"

namespace {

using namespace test::in_sweeps;
using test::again;
using test::anywhere;
using test::breathe;
using test::call;
using test::fault;
using test::one_byte;
using test::own_socket;
using test::place;
using test::runner;
using test::scenario;
using test::sweep_faults;
using weft::net::datagram;
using weft::net::endpoint;
using weft::net::incoming;
using weft::net::outgoing;
using weft::net::stream;

class datagram_faults : public testing::TestWithParam<place> {};
INSTANTIATE_TEST_SUITE_P(on, datagram_faults, testing::ValuesIn(test::places()), test::name_of_place);

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span{text}); }

constexpr std::array<std::string_view, 4> pieces{"ab", "cde", "f", "ghij"};

// By UDP, of which `there` is the test's own.
struct by_udp : scenario {
  int numbers[2];
  own_socket there;
  datagram here;
  std::vector<std::string> got;

  by_udp() : there{made(numbers)}, here{datagram::adopt(numbers[1])} { spared = {there.number()}; }
  static int made(int (&both)[2]) {
    sockaddr_in names[2]{};
    for (int i = 0; i != 2; ++i) {
      both[i] = test::real::__real_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      names[i].sin_family = AF_INET;
      names[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      socklen_t size = sizeof names[i];
      EXPECT_EQ(::bind(both[i], reinterpret_cast<const sockaddr*>(&names[i]), size), 0);
      EXPECT_EQ(::getsockname(both[i], reinterpret_cast<sockaddr*>(&names[i]), &size), 0);
    }
    for (int i = 0; i != 2; ++i)
      EXPECT_EQ(test::real::__real_connect(both[i], reinterpret_cast<const sockaddr*>(&names[1 - i]), sizeof names[0]),
                0);
    return both[0];
  }
  // One byte of a datagram can't be sent, nor received.
  static bool may_meet(const fault& what) {
    return what.at == call::sendmmsg || std::ranges::find(what.results, one_byte) == what.results.end();
  }
  void check(std::error_code failed) const {
    scenario::check(failed);
    EXPECT_EQ(got, (std::vector<std::string>{pieces.begin(), pieces.end()}));
  }
};

// One by one, each when all before it were received: so none is overlooked for a later one. What is empty is a nudge.
template <class By>
struct sends_pieces : by_udp {
  weft::event has_come;
  std::atomic<std::size_t> sent{0};

  void nudge() const { there.send(""); }
  part<By> sends() {
    for (std::size_t i = 0; i != pieces.size(); ++i) {
      co_await breathe();
      ++sent;
      there.send(pieces[i]);
      co_await has_come.wait();
      has_come.reset();
    }
  }
  void comes(std::string_view one) {
    if (one.empty()) return;
    this->got.emplace_back(one);
    if (this->got.size() == sent) has_come.set();
  }
};

template <class By>
struct receives : sends_pieces<By> {
  static constexpr std::array those{call::recvmsg};
  part<By> gets() {
    std::array<std::byte, 8> buffer;
    const auto receive = [&] { return this->here.receive(buffer); };
    while (this->got.size() != pieces.size()) {
      const weft::net::received one = co_await again<By>(*this, receive);
      this->comes(text(std::span{buffer}.first(one.size)));
    }
  }
  part<By> run() { co_await together(this->sends(), gets()); }
};

template <class By>
struct receives_from : sends_pieces<By> {
  static constexpr std::array those{call::recvmsg};
  part<By> gets() {
    std::array<std::byte, 8> buffer;
    const auto receive = [&] { return this->here.receive_from(buffer); };
    while (this->got.size() != pieces.size()) {
      const weft::net::received_from one = co_await again<By>(*this, receive);
      EXPECT_EQ(one.from, this->here.peer());
      this->comes(text(std::span{buffer}.first(one.size)));
    }
  }
  part<By> run() { co_await together(this->sends(), gets()); }
};

template <class By>
struct receives_as_case : sends_pieces<By> {
  static constexpr std::array those{call::recvmsg};
  task<weft::net::received> chosen(std::span<std::byte> into) {
    const auto got = co_await weft::select(weft::on(this->here.receive(into)), weft::after(1h));
    EXPECT_EQ(got.index, 0U);
    co_return std::get<0>(got.value);
  }
  part<By> gets() {
    std::array<std::byte, 8> buffer;
    const auto receive = [&] { return chosen(buffer); };
    while (this->got.size() != pieces.size()) {
      const weft::net::received one = co_await again<By>(*this, receive);
      this->comes(text(std::span{buffer}.first(one.size)));
    }
  }
  part<By> run() { co_await together(this->sends(), gets()); }
};

template <class By>
struct receives_batches : sends_pieces<By> {
  static constexpr std::array those{call::recvmmsg};
  part<By> gets() {
    std::array<std::array<std::byte, 8>, 3> memory;
    std::array<incoming, 3> buffers;
    for (std::size_t i = 0; i != buffers.size(); ++i) buffers[i].into = memory[i];
    const auto receive = [&] { return this->here.receive_batch(buffers); };
    while (this->got.size() != pieces.size()) {
      const std::size_t some = co_await again<By>(*this, receive);
      for (std::size_t i = 0; i != some; ++i) this->comes(text(buffers[i].bytes()));
    }
  }
  part<By> run() { co_await together(this->sends(), gets()); }
};

// What the other side has.
template <class By>
struct gets_pieces : by_udp {
  void get_all() {
    while (got.size() != pieces.size()) got.push_back(there.receive());
  }
};

template <class By>
struct sends : gets_pieces<By> {
  static constexpr std::array those{call::sendmsg};
  part<By> run() {
    for (std::size_t i = 0; i != pieces.size(); ++i) {
      const auto send = [&]() -> task<bool> {
        co_await this->here.send(pieces[i]);
        co_return true;
      };
      co_await again<By>(*this, send);
    }
    this->get_all();
  }
};

template <class By>
struct sends_to : gets_pieces<By> {
  static constexpr std::array those{call::sendmsg};
  part<By> run() {
    const endpoint to = this->here.peer();
    for (std::size_t i = 0; i != pieces.size(); ++i) {
      const auto send = [&]() -> task<bool> {
        co_await this->here.send_to(pieces[i], to);
        co_return true;
      };
      co_await again<By>(*this, send);
    }
    this->get_all();
  }
};

template <class By>
struct sends_batches : gets_pieces<By> {
  static constexpr std::array those{call::sendmmsg};
  part<By> run() {
    std::array<outgoing, pieces.size()> all{};
    for (std::size_t i = 0; i != all.size(); ++i) all[i].data = bytes(pieces[i]);
    std::span<const outgoing> left = all;
    const auto send = [&] { return this->here.send_batch(left); };
    while (!left.empty()) {
      const std::size_t some = co_await again<By>(*this, send);
      EXPECT_GT(some, 0U);
      left = left.subspan(some);
    }
    this->get_all();
  }
};

// Of a kernel that cuts them, and, of segments that it does not cut, one by one.
template <class By, call Which, std::size_t Segment>
struct sends_segments_as : by_udp {
  static constexpr std::array those{Which};
  part<By> run() {
    const std::string all(2 * Segment + 1, 'x');
    std::span<const std::byte> left = bytes(all);
    const auto send = [&] { return this->here.send_segments(left, Segment); };
    std::vector<char> buffer(Segment);
    std::vector<std::size_t> sizes;
    while (!left.empty()) {
      const std::size_t some = co_await again<By>(*this, send);
      EXPECT_GT(some, 0U);
      left = left.subspan(some);
      for (std::size_t had = 0; had < some; had += sizes.back())
        sizes.push_back(
            static_cast<std::size_t>(test::real::__real_recv(there.number(), buffer.data(), buffer.size(), 0)));
    }
    EXPECT_EQ(sizes, (std::vector<std::size_t>{Segment, Segment, 1}));
    this->got.assign(pieces.begin(), pieces.end());
  }
};
template <class By>
struct sends_segments : sends_segments_as<By, call::sendmsg, 100> {};
template <class By>
struct sends_long_segments : sends_segments_as<By, call::sendmmsg, 40'000> {};

template <class By>
struct binds : scenario {
  static constexpr std::array those{call::socket, call::bind, call::epoll_ctl};
  part<By> run() {
    const auto bind = [] { return weft::net::bind(anywhere); };
    const datagram at = co_await again<By>(*this, bind);
    co_await at.send_to("x", at.local());
    std::array<std::byte, 4> buffer;
    const weft::net::received one = co_await at.receive(buffer);
    EXPECT_EQ(one.size, 1U);
  }
};

template <class By>
struct connects : scenario {
  static constexpr std::array those{call::socket, call::connect, call::epoll_ctl};
  datagram at = datagram::adopt([] {
    const int number = test::real::__real_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;  // one that the system chooses
    EXPECT_EQ(::bind(number, reinterpret_cast<const sockaddr*>(&name), sizeof(sa_family_t)), 0);
    return number;
  }());
  // It waits for nobody.
  static bool may_meet(const fault& what) {
    return std::ranges::find(what.results, EINTR) == what.results.end() &&
           std::ranges::find(what.results, EALREADY) == what.results.end();
  }
  part<By> run() {
    const endpoint where = at.local();
    const auto connect = [&] { return weft::net::connect_datagram(where); };
    const datagram to = co_await again<By>(*this, connect);
    co_await to.send("x");
    std::array<std::byte, 4> buffer;
    const weft::net::received one = co_await at.receive(buffer);
    EXPECT_EQ(one.size, 1U);
  }
};

template <class By>
struct adopts : by_udp {
  static constexpr std::array those{call::fcntl, call::epoll_ctl};
  part<By> run() {
    const int number = here.release();
    const auto adopt = [&]() -> task<datagram> { co_return datagram::adopt(number); };
    here = co_await again<By>(*this, adopt);
    there.send("x");
    std::array<std::byte, 4> buffer;
    const weft::net::received one = co_await here.receive(buffer);
    EXPECT_EQ(one.size, 1U);
    got.assign(pieces.begin(), pieces.end());
  }
};

// ---- descriptors --------------------------------------------------------------------------------------------------------------

struct by_local_stream : scenario {
  std::array<int, 2> both = [] {
    std::array<int, 2> made;
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, made.data()), 0);
    return made;
  }();
  own_socket there{both[0]};
  stream here = stream::adopt(both[1]);

  by_local_stream() { spared = {there.number()}; }
  static bool may_meet(const fault& what) { return std::ranges::find(what.results, one_byte) == what.results.end(); }
};

template <class By>
struct passes_descriptors : by_local_stream {
  static constexpr std::array those{call::sendmsg};
  part<By> run() {
    const std::array<int, 2> numbers{both[0], both[1]};
    const auto send = [&] { return weft::net::send_descriptors(here, numbers, bytes("x")); };
    for (int i = 0; i != 3; ++i) EXPECT_EQ(co_await again<By>(*this, send), 1U);
    EXPECT_EQ(there.receive() + there.receive() + there.receive(), "xxx");  // a read ends behind each
  }
};

template <class By>
struct receives_descriptors : by_local_stream {
  static constexpr std::array those{call::recvmsg};
  std::string got;

  void nudge() const { there.send("."); }
  part<By> sends() {
    for (const std::string_view one : {"a", "b", "c"}) {
      co_await breathe();
      const int number = there.number();
      iovec part{.iov_base = const_cast<char*>(one.data()), .iov_len = 1};  // NOLINT: only read
      alignas(cmsghdr) char room[CMSG_SPACE(sizeof number)]{};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = room;
      message.msg_controllen = sizeof room;
      cmsghdr& first = *CMSG_FIRSTHDR(&message);
      first.cmsg_level = SOL_SOCKET;
      first.cmsg_type = SCM_RIGHTS;
      first.cmsg_len = CMSG_LEN(sizeof number);
      std::memcpy(CMSG_DATA(&first), &number, sizeof number);
      EXPECT_EQ(::sendmsg(there.number(), &message, 0), 1);
    }
    there.send("d");
  }
  part<By> gets() {
    const auto receive = [&] { return weft::net::receive_descriptors(here, buffer, 1); };
    for (std::size_t descriptors = 0; got.size() != 4 || descriptors != 3;) {
      const weft::net::with_descriptors some = co_await again<By>(*this, receive);
      for (const char one : text(std::span{buffer}.first(some.size)))
        if (one != '.') got += one;
      descriptors += some.descriptors.size();
    }
  }
  part<By> run() { co_await together(sends(), gets()); }
  void check(std::error_code failed) const {
    scenario::check(failed);
    EXPECT_EQ(got, "abcd");
  }
  std::array<std::byte, 8> buffer{};
};

TEST_P(datagram_faults, of_receive) { sweep_faults<receives>(GetParam()); }
TEST_P(datagram_faults, of_receive_from) { sweep_faults<receives_from>(GetParam()); }
TEST_P(datagram_faults, of_a_receive_as_a_case) { sweep_faults<receives_as_case>(GetParam()); }
TEST_P(datagram_faults, of_receive_batch) { sweep_faults<receives_batches>(GetParam()); }
TEST_P(datagram_faults, of_send) { sweep_faults<sends>(GetParam()); }
TEST_P(datagram_faults, of_send_to) { sweep_faults<sends_to>(GetParam()); }
TEST_P(datagram_faults, of_send_batch) { sweep_faults<sends_batches>(GetParam()); }
TEST_P(datagram_faults, of_send_segments) { sweep_faults<sends_segments>(GetParam()); }
TEST_P(datagram_faults, of_segments_sent_one_by_one) { sweep_faults<sends_long_segments>(GetParam()); }
TEST_P(datagram_faults, of_bind) { sweep_faults<binds>(GetParam()); }
TEST_P(datagram_faults, of_connect_datagram) { sweep_faults<connects>(GetParam()); }
TEST_P(datagram_faults, of_adopt) { sweep_faults<adopts>(GetParam()); }
TEST_P(datagram_faults, of_send_descriptors) { sweep_faults<passes_descriptors>(GetParam()); }
TEST_P(datagram_faults, of_receive_descriptors) { sweep_faults<receives_descriptors>(GetParam()); }

// An interface without the means for it, or a system.
TEST_P(datagram_faults, segments_that_the_system_refuses_to_cut_are_sent_one_by_one) {
  runner run{GetParam()};
  for (const int why : {EIO, EINVAL, EOPNOTSUPP}) {
    const auto body = [why]() -> task<> {
      const by_udp both;
      const test::injection fails{{call::sendmsg, {why}}, 0};
      EXPECT_EQ(co_await both.here.send_segments(bytes("aabbc"), 2), 5U);
      EXPECT_EQ(fails.struck(), 1U);
      for (const char* const each : {"aa", "bb", "c"}) EXPECT_EQ(both.there.receive(), each);
    };
    run(body);
  }
}

// Another thread closes between a look whether it is closed and the call.
TEST_P(datagram_faults, of_what_is_closed_meanwhile) {
  runner run{GetParam()};
  const auto body = []() -> task<> {
    std::array<std::byte, 4> buffer;
    for (int i = 0; i != 3; ++i) {
      by_udp one;
      constexpr std::array calls{call::recvmsg, call::recvmmsg, call::sendmsg};
      const test::injection closing{
          {calls[static_cast<std::size_t>(i)], {test::meanwhile}}, 0, [&] { one.here.close(); }};
      std::array<incoming, 1> buffers{};
      std::error_code how;
      if (i == 0) how = (co_await as_result(one.here.receive(buffer))).error();
      if (i == 1) how = (co_await as_result(one.here.receive_batch(buffers))).error();
      if (i == 2) how = (co_await as_result(one.here.send("x"))).error();
      EXPECT_EQ(how, weft::errc::closed) << i;
    }
  };
  run(body);
}

}  // namespace
