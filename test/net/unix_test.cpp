// Unix sockets: streams, listeners and datagrams by paths and abstract names, credentials, descriptors. See weft/unix.hpp. As
// net_test.cpp, with WEFT_TEST_IN_RUNTIME=epoll or =uring all bodies run in a runtime on that.
#include "support/weft_test.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>
#include <weft/combine.hpp>
#include <weft/io.hpp>
#include <weft/race.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/serve.hpp>
#include <weft/unix.hpp>

#include "net/socket_file.hpp"
#include "net/sockets.hpp"

namespace {

using namespace std::chrono_literals;
using test::bytes;
using test::connected;
using test::connection;
using test::read_all;
using test::read_exactly;
using weft::as_result;
using weft::on;
using weft::select;
using weft::task;
using weft::timeout;
using weft::net::bind;
using weft::net::connect;
using weft::net::datagram;
using weft::net::endpoint;
using weft::net::listen;
using weft::net::listener;
using weft::net::owned_descriptor;
using weft::net::receive_descriptors;
using weft::net::received_from;
using weft::net::send_descriptors;
using weft::net::stream;
using weft::net::with_descriptors;

static_assert(weft::io::reader<stream> && weft::io::writer<stream>);

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A directory that goes with what is in it.
struct directory {
  std::string path = [] {
    std::string made = "/tmp/weft-unix-XXXXXX";
    EXPECT_NE(::mkdtemp(made.data()), nullptr);
    return made;
  }();
  directory() = default;
  directory(const directory&) = delete;
  ~directory() {
    for (const std::string& one : names()) ::unlink((path + '/' + one).c_str());
    ::rmdir(path.c_str());
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    DIR* const those = ::opendir(path.c_str());
    while (const dirent* const one = ::readdir(those))
      if (one->d_name[0] != '.') all.emplace_back(one->d_name);
    ::closedir(those);
    return all;
  }
  endpoint operator/(std::string_view name) const { return endpoint::unix_path(path + '/' + std::string{name}); }
};

// One that nobody else has.
endpoint a_name() {
  static std::atomic<int> count{0};
  return endpoint::unix_abstract("weft-test-" + std::to_string(::getpid()) + '-' + std::to_string(++count));
}

std::vector<int> open_numbers() {
  std::vector<int> all;
  DIR* const those = ::opendir("/proc/self/fd");
  while (const dirent* const one = ::readdir(those)) all.push_back(std::atoi(one->d_name));
  ::closedir(those);
  std::ranges::sort(all);
  return all;
}

// ---- endpoints ------------------------------------------------------------------------------------------------------------

TEST(unix_endpoint, is_a_path_or_a_name) {
  const endpoint path = endpoint::unix_path("/run/x"), name = endpoint::unix_abstract("x");
  EXPECT_TRUE(path.is_unix() && name.is_unix() && !endpoint{}.is_unix());
  EXPECT_EQ(path.to_string(), "unix:/run/x");
  EXPECT_EQ(path.address(), "/run/x");
  EXPECT_EQ(name.to_string(), "unix:@x");
  EXPECT_EQ(path.port(), 0);
  EXPECT_NE(path, endpoint::unix_path("/run/y"));
  EXPECT_NE(endpoint::unix_path("x"), endpoint::unix_abstract("x"));
  for (const endpoint& one : {path, name, endpoint::unix_abstract(std::string_view{"a\0b", 3})})
    EXPECT_EQ(endpoint::parse(one.to_string()), one);
  EXPECT_EQ(endpoint::unix_path("@x").to_string(), "unix:./@x");
}

TEST(unix_endpoint, says_what_is_wrong_with_it) {
  const auto refused = [](auto make) {
    try {
      static_cast<void>(make());
    } catch (const weft::error& failure) {
      return failure.code();
    }
    return std::error_code{};
  };
  const std::string longest(107, 'x');
  EXPECT_EQ(endpoint::unix_path(longest).address(), longest);
  EXPECT_EQ(endpoint::unix_abstract(longest).address(), '@' + longest);
  EXPECT_EQ(refused([&] { return endpoint::unix_path(longest + 'x'); }), std::errc::filename_too_long);
  EXPECT_EQ(refused([&] { return endpoint::unix_abstract(longest + 'x'); }), std::errc::filename_too_long);
  EXPECT_EQ(refused([] { return endpoint::unix_path(""); }), std::errc::invalid_argument);
  EXPECT_EQ(refused([] { return endpoint::unix_path(std::string_view{"a\0b", 3}); }), std::errc::invalid_argument);
  EXPECT_EQ(refused([] { return endpoint::unix_abstract(""); }), std::errc::invalid_argument);
  EXPECT_EQ(refused([] { return endpoint::parse("unix:"); }), std::errc::invalid_argument);
  EXPECT_EQ(refused([] { return endpoint::parse("unix:@"); }), std::errc::invalid_argument);
}

// ---- streams --------------------------------------------------------------------------------------------------------------

task<> ask(endpoint where) {
  const listener at = co_await listen(where);
  EXPECT_EQ(at.local(), where);
  const stream here = co_await connect(where);
  const stream there = co_await at.accept();
  EXPECT_EQ(here.peer(), where);
  EXPECT_EQ(there.local(), where);
  EXPECT_TRUE(there.peer().is_unix());
  EXPECT_EQ(there.peer().to_string(), "unix:");
  co_await here.write("a question");
  here.shutdown();
  EXPECT_EQ(co_await read_all(there), "a question");
  co_await there.write("an answer");
  EXPECT_EQ(co_await read_exactly(here, 9), "an answer");
}

WEFT_TEST("unix: streams by a path") {
  const directory place;
  co_await ask(place / "socket");
  EXPECT_TRUE(place.names().empty());  // gone with the listener
}
WEFT_TEST("unix: streams by abstract names") {
  co_await ask(a_name());
  co_await ask(endpoint::unix_abstract(a_name().address() + std::string("\0\xff", 2)));
  co_await ask(endpoint::unix_abstract((a_name().address() + std::string(107, 'x')).substr(0, 107)));
}

TEST(unix_stream, options_of_none_are_refused_as_closed) {
  const auto is_closed = [](auto set) {
    try {
      set();
    } catch (const weft::error& refused) {
      return refused.code() == weft::errc::closed;
    }
    return false;
  };
  const stream none;
  EXPECT_TRUE(is_closed([&] { none.set_no_delay(true); }));
  EXPECT_TRUE(is_closed([&] { none.set_keep_alive(true); }));
  EXPECT_TRUE(is_closed([&] { none.set_receive_buffer(4096); }));
  EXPECT_TRUE(is_closed([&] { none.set_send_buffer(4096); }));
}

WEFT_TEST("unix: a connection to nobody is refused by name") {
  const directory place;
  const auto none = co_await as_result(connect(place / "none"));
  EXPECT_EQ(none.error(), std::errc::no_such_file_or_directory);
  EXPECT_EQ((co_await as_result(connect(a_name()))).error(), std::errc::connection_refused);
  try {
    static_cast<void>(none.value());
  } catch (const weft::error& failure) {
    EXPECT_NE(std::string_view{failure.what()}.find(place.path), std::string_view::npos) << failure.what();
  }
}

// The system says "try again" then, and never that one may.
WEFT_TEST("unix: a connection waits for room at the listener") {
  const listener at = co_await listen({.backlog = 0}, a_name());
  const stream first = co_await connect(at.local());
  const auto late = co_await as_result(timeout(20ms, connect(at.local())));
  EXPECT_EQ(late.error(), weft::errc::timed_out);
  const auto accepts = [&]() -> task<stream> {
    co_await weft::sleep_for(5ms);
    co_return co_await at.accept();
  };
  auto [second, accepted] = co_await weft::when_all(connect(at.local()), accepts());
  const stream its = co_await at.accept();
  co_await second.write("x");
  EXPECT_EQ(co_await read_exactly(its, 1), "x");
}

WEFT_TEST("unix: a server") {
  const auto echo = [](stream peer) -> task<> {
    std::array<std::byte, 64> buffer;
    while (const std::size_t size = co_await peer.read(buffer)) co_await peer.write(std::span{buffer}.first(size));
  };
  const auto asks = [](endpoint where) -> task<std::string> {
    const stream to = co_await connect(where);
    co_await to.write("echo");
    to.shutdown();
    co_return co_await read_all(to);
  };
  const directory place;
  weft::net::server_stats stats;
  listener at = co_await listen(place / "socket");
  auto server = weft::net::serve({.stats = &stats}, std::move(at), echo);
  auto client = asks(place / "socket");
  const auto first = co_await weft::when_any(std::move(server), std::move(client));
  EXPECT_EQ(first.index, 1u);
  EXPECT_EQ(std::get<1>(first.value), "echo");
  EXPECT_EQ(stats.accepted(), 1u);
  EXPECT_TRUE(place.names().empty());
}

// ---- files ----------------------------------------------------------------------------------------------------------------

void leave_stale(const endpoint& where, int type) {
  const int number = ::socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strcpy(name.sun_path, where.address().c_str());
  EXPECT_EQ(::bind(number, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  ::close(number);
}

WEFT_TEST("unix: a stale file is in the way, unless it may be replaced") {
  const directory place;
  const endpoint where = place / "socket";
  leave_stale(where, SOCK_STREAM);
  EXPECT_EQ((co_await as_result(listen(where))).error(), std::errc::address_in_use);
  {
    const listener at = co_await listen({.replace_stale = true}, where);
    const stream to = co_await connect(where);
    // One that listens is not stale.
    EXPECT_EQ((co_await as_result(listen({.replace_stale = true}, where))).error(), std::errc::address_in_use);
    EXPECT_EQ((co_await as_result(bind({.replace_stale = true}, where))).error(), std::errc::address_in_use);
  }
  EXPECT_TRUE(place.names().empty());
  leave_stale(where, SOCK_DGRAM);
  EXPECT_EQ((co_await as_result(bind(where))).error(), std::errc::address_in_use);
  const datagram at = co_await bind({.replace_stale = true}, where);
  EXPECT_EQ((co_await as_result(bind({.replace_stale = true}, where))).error(), std::errc::address_in_use);
}

WEFT_TEST("unix: what is no socket is never replaced, nor removed") {
  const directory place;
  const endpoint where = place / "file";
  ::close(::open(where.address().c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  EXPECT_EQ((co_await as_result(listen({.replace_stale = true}, where))).error(), std::errc::address_in_use);
  EXPECT_EQ(place.names().size(), 1u);
}

WEFT_TEST("unix: a listener removes its own file alone, and once") {
  const directory place;
  const endpoint where = place / "socket";
  listener first = co_await listen(where);
  ::unlink(where.address().c_str());
  listener second = co_await listen(where);
  first.close();
  EXPECT_EQ(place.names().size(), 1u);  // the second one's
  second.close();
  EXPECT_TRUE(place.names().empty());
  listener third = co_await listen(where);
  second.close();
  second = listener{};
  EXPECT_EQ(place.names().size(), 1u);
  listener moved = std::move(third);
  third = std::move(moved);
  EXPECT_EQ(place.names().size(), 1u);
  third = listener{};
  EXPECT_TRUE(place.names().empty());
}

WEFT_TEST("unix: a datagram socket's file stays where it is released") {
  const directory place;
  datagram at = co_await bind(place / "socket");
  const int number = at.release();
  EXPECT_EQ(place.names().size(), 1u);
  ::close(number);
}

int in_a_child(auto body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(unix_file, a_forked_copy_does_not_remove) {
  const directory place;
  const endpoint where = place / "socket";
  {
    weft::net::new_socket_file file{where};
    const weft::net::system_address address{where};
    const owned_descriptor made{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    EXPECT_EQ(file.bind(made.number(), address, false), 0);
    const auto removes = [&file] {
      file.~new_socket_file();
      return 0;
    };
    EXPECT_EQ(in_a_child(removes), 0);
    EXPECT_EQ(place.names().size(), 1u);
  }
  EXPECT_TRUE(place.names().empty());
}

TEST(unix_file, of_a_relative_path_is_removed_from_elsewhere) {
  const directory place;
  const auto goes_elsewhere = [&place] {
    if (::chdir(place.path.c_str()) != 0) return 1;
    const endpoint where = endpoint::unix_path("socket");
    weft::net::new_socket_file file{where};
    const weft::net::system_address address{where};
    const owned_descriptor made{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    if (file.bind(made.number(), address, false) != 0 || place.names().size() != 1) return 2;
    return ::chdir("/") == 0 ? 0 : 3;
  };
  EXPECT_EQ(in_a_child(goes_elsewhere), 0);
  EXPECT_TRUE(place.names().empty());
}

// ---- reads that end early --------------------------------------------------------------------------------------------------

void send_with_descriptor(int by, std::string_view data, int descriptor) {
  iovec part{.iov_base = const_cast<char*>(data.data()), .iov_len = data.size()};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))]{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  cmsghdr& first = *CMSG_FIRSTHDR(&message);
  first.cmsg_level = SOL_SOCKET;
  first.cmsg_type = SCM_RIGHTS;
  first.cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(&first), &descriptor, sizeof descriptor);
  EXPECT_EQ(::sendmsg(by, &message, 0), static_cast<ssize_t>(data.size()));
}

// A read ends behind bytes that came with a descriptor, however much is behind them, and that was reported before.
WEFT_TEST("unix: a read that ends at a descriptor has not seen the end") {
  for (int i = 0; i != 20; ++i) {
    const connection both = connected();
    const auto sends = [&]() -> task<> {
      co_await weft::sleep_for(100us);
      const int by = both.there.native_handle();
      EXPECT_EQ(::send(by, "ab", 2, 0), 2);
      send_with_descriptor(by, "cd", by);
      send_with_descriptor(by, "ef", by);
      EXPECT_EQ(::send(by, "gh", 2, 0), 2);
    };
    const std::size_t before = open_numbers().size();
    auto reading = weft::when_all(read_exactly(both.here, 8), sends());
    const auto got = co_await timeout(60s, std::move(reading));
    EXPECT_EQ(std::get<0>(got), "abcdefgh");
    EXPECT_EQ(open_numbers().size(), before);  // what is not asked for is closed
  }
}

WEFT_TEST("unix: so does a receive into a buffer that is lent") {
  const connection both = connected();
  const auto sends = [&]() -> task<> {
    co_await weft::sleep_for(100us);
    send_with_descriptor(both.there.native_handle(), "ab", both.there.native_handle());
    EXPECT_EQ(::send(both.there.native_handle(), "cd", 2, 0), 2);
  };
  const auto reads = [&]() -> task<std::string> {
    std::string all;
    while (all.size() != 4) all += (co_await both.here.receive()).text();
    co_return all;
  };
  auto reading = weft::when_all(reads(), sends());
  EXPECT_EQ(std::get<0>(co_await timeout(60s, std::move(reading))), "abcd");
}

// Each time the sender is another one, as the system tells them apart, a read ends.
WEFT_TEST("unix: and one that ends at other credentials") {
  const directory place;
  const listener at = co_await listen(place / "socket");
  const stream to = co_await connect(at.local());
  const stream from = co_await at.accept();
  const int yes = 1;
  EXPECT_EQ(::setsockopt(from.native_handle(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes), 0);
  const auto send_as = [&](std::string_view data, unsigned group) {
    iovec part{.iov_base = const_cast<char*>(data.data()), .iov_len = data.size()};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(ucred))]{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    cmsghdr& first = *CMSG_FIRSTHDR(&message);
    first.cmsg_level = SOL_SOCKET;
    first.cmsg_type = SCM_CREDENTIALS;
    first.cmsg_len = CMSG_LEN(sizeof(ucred));
    const ucred who{.pid = ::getpid(), .uid = ::getuid(), .gid = group};
    std::memcpy(CMSG_DATA(&first), &who, sizeof who);
    return ::sendmsg(to.native_handle(), &message, 0) == static_cast<ssize_t>(data.size());
  };
  const auto sends = [&]() -> task<bool> {
    co_await weft::sleep_for(100us);
    if (!send_as("ab", ::getgid())) co_return false;
    const bool may_lie = send_as("cd", ::getgid() + 1);  // as root alone
    co_await to.write(may_lie ? "ef" : "cdef");
    co_return true;
  };
  auto reading = weft::when_all(read_exactly(from, 6), sends());
  const auto got = co_await timeout(60s, std::move(reading));
  EXPECT_EQ(std::get<0>(got), "abcdef");
}

// ---- credentials ------------------------------------------------------------------------------------------------------------

WEFT_TEST("unix: credentials are the peer's") {
  const listener at = co_await listen(a_name());
  const stream to = co_await connect(at.local());
  const stream from = co_await at.accept();
  for (const stream* const one : {&to, &from}) {
    const weft::net::peer_credentials who = weft::net::credentials(*one);
    EXPECT_EQ(who.process, ::getpid());
    EXPECT_EQ(who.user, ::getuid());
    EXPECT_EQ(who.group, ::getgid());
  }
  EXPECT_THROW(static_cast<void>(weft::net::credentials(stream{})), weft::error);
  const connection by_tcp = co_await test::connected_by_tcp();
  EXPECT_THROW(static_cast<void>(weft::net::credentials(by_tcp.here)), weft::error);
}

// ---- descriptors --------------------------------------------------------------------------------------------------------------

bool is_same_file(int a, int b) {
  struct stat one, other;
  return ::fstat(a, &one) == 0 && ::fstat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

struct a_pipe {
  std::array<int, 2> ends = [] {
    std::array<int, 2> made{};
    EXPECT_EQ(::pipe2(made.data(), O_CLOEXEC), 0);
    return made;
  }();
  a_pipe() = default;
  a_pipe(const a_pipe&) = delete;
  ~a_pipe() {
    for (const int one : ends) ::close(one);
  }
};

WEFT_TEST("descriptors: pass through a stream, with bytes") {
  const connection both = connected();
  const a_pipe sent;
  const std::vector<int> before = open_numbers();
  {
    EXPECT_EQ(co_await send_descriptors(both.there, sent.ends, bytes("two")), 3u);
    std::array<std::byte, 16> buffer;
    const with_descriptors got = co_await receive_descriptors(both.here, buffer, 2);
    EXPECT_EQ(text(std::span{buffer}.first(got.size)), "two");
    EXPECT_FALSE(got.lost_descriptors);
    EXPECT_EQ(got.descriptors.size(), 2u);
    for (std::size_t i = 0; i != got.descriptors.size(); ++i) {
      EXPECT_TRUE(is_same_file(got.descriptors[i].number(), sent.ends[i]));
      EXPECT_NE(::fcntl(got.descriptors[i].number(), F_GETFD) & FD_CLOEXEC, 0);
    }
  }
  EXPECT_EQ(open_numbers(), before);
  co_await both.there.write("none");
  std::array<std::byte, 16> buffer;
  const with_descriptors got = co_await receive_descriptors(both.here, buffer, 2);
  EXPECT_EQ(got.size, 4u);
  EXPECT_TRUE(got.descriptors.empty() && !got.lost_descriptors);
  both.there.shutdown();
  EXPECT_EQ((co_await receive_descriptors(both.here, buffer, 2)).size, 0u);
}

WEFT_TEST("descriptors: each receive has those that came with its bytes") {
  const connection both = connected();
  const a_pipe sent;
  const auto sends = [&]() -> task<> {
    co_await weft::sleep_for(100us);
    co_await both.there.write("a");
    EXPECT_EQ(co_await send_descriptors(both.there, std::span{sent.ends}.first(1), bytes("b")), 1u);
    EXPECT_EQ(co_await send_descriptors(both.there, std::span{sent.ends}.last(1), bytes("c")), 1u);
    co_await both.there.write("d");
  };
  const auto receives = [&]() -> task<std::string> {
    std::string all;
    while (all.size() < 4 + 2) {
      std::array<std::byte, 16> buffer;
      const with_descriptors got = co_await receive_descriptors(both.here, buffer, 1);
      all += text(std::span{buffer}.first(got.size));
      for (const owned_descriptor& one : got.descriptors) all += is_same_file(one.number(), sent.ends[0]) ? '0' : '1';
    }
    co_return all;
  };
  auto passing = weft::when_all(receives(), sends());
  const std::string all = std::get<0>(co_await timeout(60s, std::move(passing)));
  EXPECT_EQ(all.size(), 6u);
  EXPECT_LT(all.find('b'), all.find('0'));
  EXPECT_LT(all.find('0'), all.find('c'));
  EXPECT_LT(all.find('c'), all.find('1'));
}

WEFT_TEST("descriptors: more than were asked for are lost, and none leaks") {
  const connection both = connected();
  const a_pipe sent;
  const std::array<int, 5> those{sent.ends[0], sent.ends[1], sent.ends[0], sent.ends[1], sent.ends[0]};
  const std::vector<int> before = open_numbers();
  std::array<std::byte, 16> buffer;
  for (const std::size_t most : {0u, 1u, 2u, 3u, 4u, 5u, 253u}) {
    EXPECT_EQ(co_await send_descriptors(both.there, those, bytes("x")), 1u);
    const with_descriptors got = co_await receive_descriptors(both.here, buffer, most);
    EXPECT_EQ(got.size, 1u);
    EXPECT_EQ(got.descriptors.size(), std::min<std::size_t>(most, 5));
    EXPECT_EQ(got.lost_descriptors, most < 5);
    EXPECT_EQ(open_numbers().size(), before.size() + got.descriptors.size());
  }
  EXPECT_EQ(open_numbers(), before);
}

WEFT_TEST("descriptors: as many as the system passes at once") {
  const connection both = connected();
  const a_pipe sent;
  const std::vector<int> those(weft::net::most_descriptors, sent.ends[0]);
  const std::vector<int> before = open_numbers();
  {
    EXPECT_EQ(co_await send_descriptors(both.there, those, bytes("x")), 1u);
    std::array<std::byte, 1> buffer;
    const with_descriptors got = co_await receive_descriptors(both.here, buffer, those.size());
    EXPECT_EQ(got.descriptors.size(), those.size());
    EXPECT_FALSE(got.lost_descriptors);
  }
  EXPECT_EQ(open_numbers(), before);
}

WEFT_TEST("descriptors: a receive that is stopped has taken none") {
  const connection both = connected();
  const a_pipe sent;
  const std::vector<int> before = open_numbers();
  std::array<std::byte, 4> buffer;
  for (int i = 0; i != 10; ++i) {
    EXPECT_EQ((co_await as_result(timeout(1ms, receive_descriptors(both.here, buffer, 2)))).error(),
              weft::errc::timed_out);
    EXPECT_EQ(co_await send_descriptors(both.there, sent.ends, bytes("x")), 1u);
    EXPECT_EQ((co_await select(on(receive_descriptors(both.here, buffer, 2)), weft::after(60s))).index, 0u);
    EXPECT_EQ(open_numbers(), before);
  }
}

WEFT_TEST("descriptors: what is refused has sent nothing") {
  const connection both = connected();
  const std::array<int, 1> wrong{-1};
  EXPECT_EQ((co_await as_result(send_descriptors(both.there, wrong, bytes("x")))).error(),
            std::errc::bad_file_descriptor);
  const connection by_tcp = co_await test::connected_by_tcp();
  const std::array<int, 1> right{both.here.native_handle()};
  EXPECT_EQ((co_await as_result(send_descriptors(by_tcp.here, right, bytes("x")))).error(),
            std::errc::invalid_argument);
  EXPECT_EQ((co_await as_result(send_descriptors(stream{}, right, bytes("x")))).error(), weft::errc::closed);
  co_await both.there.write("y");
  EXPECT_EQ(co_await read_exactly(both.here, 1), "y");
}

WEFT_TEST("descriptors: by datagrams, as one piece") {
  const datagram at = co_await bind(a_name());
  const datagram to = co_await weft::net::connect_datagram(at.local());
  const a_pipe sent;
  const std::vector<int> before = open_numbers();
  {
    EXPECT_EQ(co_await send_descriptors(to, sent.ends, bytes("a pair")), 6u);
    EXPECT_EQ(co_await send_descriptors(to, sent.ends, {}), 0u);
    std::array<std::byte, 4> buffer;
    const with_descriptors got = co_await receive_descriptors(at, buffer, 2);
    EXPECT_EQ(text(buffer), "a pa");
    EXPECT_TRUE(got.is_truncated());
    EXPECT_EQ(got.full_size, 6u);
    EXPECT_EQ(got.descriptors.size(), 2u);
    const with_descriptors empty = co_await receive_descriptors(at, buffer, 2);
    EXPECT_EQ(empty.size, 0u);
    EXPECT_EQ(empty.descriptors.size(), 2u);
  }
  EXPECT_EQ(open_numbers(), before);
  // A receive that asks for none has none.
  EXPECT_EQ(co_await send_descriptors(to, sent.ends, bytes("x")), 1u);
  std::array<std::byte, 4> buffer;
  EXPECT_EQ((co_await at.receive(buffer)).size, 1u);
  EXPECT_EQ(co_await send_descriptors(to, sent.ends, bytes("x")), 1u);
  weft::net::incoming_buffers buffers{2, 4};
  EXPECT_EQ(co_await at.receive_batch(buffers), 1u);
  EXPECT_EQ(open_numbers(), before);
}

TEST(descriptors_misuse, ends_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const stream none;
  std::array<std::byte, 1> buffer;
  const std::vector<int> many(254, 0);
  EXPECT_DEATH(static_cast<void>(send_descriptors(none, {}, {})), "without a byte");
  EXPECT_DEATH(static_cast<void>(send_descriptors(none, many, bytes("x"))), "more descriptors were to be sent");
  EXPECT_DEATH(static_cast<void>(receive_descriptors(none, buffer, 254)), "more than the system passes");
  EXPECT_DEATH(static_cast<void>(receive_descriptors(none, {}, 1)), "without room for a byte");
}

// ---- datagrams ------------------------------------------------------------------------------------------------------------------

WEFT_TEST("unix datagrams: by paths and names, with who has sent them") {
  const directory place;
  const datagram here = co_await bind(place / "here");
  const datagram there = co_await bind(a_name());
  co_await here.send_to("hello", there.local());
  std::array<std::byte, 16> buffer;
  const received_from got = co_await there.receive_from(buffer);
  EXPECT_EQ(got.from, here.local());
  co_await there.send_to("you too", got.from);
  EXPECT_EQ((co_await here.receive_from(buffer)).from, there.local());
  const datagram nameless = co_await weft::net::connect_datagram(there.local());
  co_await nameless.send("who?");
  EXPECT_EQ((co_await there.receive_from(buffer)).from.to_string(), "unix:");
  EXPECT_EQ((co_await as_result(weft::net::connect_datagram(place / "none"))).error(),
            std::errc::no_such_file_or_directory);
}

void take_all(const datagram& from) {
  std::vector<std::byte> buffer(64 << 10);
  while (::recv(from.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT) >= 0) continue;
}

// The sender's own socket has room all the while, so nothing is reported of it.
WEFT_TEST("unix datagrams: who sends to a receiver without room waits for it") {
  const datagram there = co_await bind(a_name());
  const endpoint to = there.local();
  for (const bool is_peer : {false, true}) {
    const datagram here = co_await bind(a_name());
    if (is_peer) here.connect(to);
    const auto sends_all = [&]() -> task<> {
      for (int i = 0; i != 100; ++i) {
        const std::string text = std::to_string(i);
        if (is_peer)
          co_await here.send(text);
        else
          co_await here.send_to(text, to);
      }
    };
    EXPECT_EQ((co_await as_result(timeout(20ms, sends_all()))).error(), weft::errc::timed_out);
    const std::vector<int> before = open_numbers();
    std::array<std::byte, 16> buffer;
    take_all(there);
    std::string all;
    const auto receives_all = [&]() -> task<> {
      co_await weft::sleep_for(5ms);
      for (int i = 0; i != 100; ++i) {
        const auto got = co_await there.receive(buffer);
        all += text(std::span{buffer}.first(got.size));
      }
    };
    auto passing = weft::when_all(sends_all(), receives_all());
    co_await timeout(60s, std::move(passing));
    std::string expected;
    for (int i = 0; i != 100; ++i) expected += std::to_string(i);
    EXPECT_EQ(all, expected);
    EXPECT_EQ(open_numbers(), before);
  }
}

WEFT_TEST("unix datagrams: a batch to a receiver without room goes on, and as a case it fails") {
  const datagram there = co_await bind(a_name());
  const datagram here = co_await bind(a_name());
  std::vector<weft::net::outgoing> those(60, {.data = bytes("x"), .to = there.local()});
  std::size_t sent = 0, got = 0;
  const auto sends = [&]() -> task<> {
    while (sent != those.size()) sent += co_await here.send_batch(std::span{those}.subspan(sent));
  };
  const auto receives = [&]() -> task<> {
    while (sent == 0) co_await weft::sleep_for(1ms);  // it fills all room, and waits then
    auto one_more = select(on(here.send_to("x", there.local())), weft::after(60s));
    EXPECT_EQ((co_await as_result(std::move(one_more))).error(), std::errc::resource_unavailable_try_again);
    weft::net::incoming_buffers buffers{4, 4};
    while (got != those.size()) got += co_await there.receive_batch(buffers);
  };
  auto passing = weft::when_all(sends(), receives());
  co_await timeout(60s, std::move(passing));
  EXPECT_EQ(sent, 60u);
}

WEFT_TEST("unix datagrams: who waits for room can be stopped, and finds its socket closed") {
  const datagram there = co_await bind(a_name());
  datagram here = co_await bind(a_name());
  const auto sends = [&]() -> task<> {
    for (;;) co_await here.send_to("x", there.local());
  };
  EXPECT_EQ((co_await as_result(timeout(5ms, sends()))).error(), weft::errc::timed_out);
  const auto closes = [&]() -> task<> {
    co_await weft::sleep_for(1ms);
    here.close();
    weft::net::incoming_buffers buffers{16, 4};
    co_await there.receive_batch(buffers);
  };
  auto sending = sends();
  const auto [how, none] = co_await weft::when_all(as_result(std::move(sending)), closes());
  EXPECT_EQ(how.error(), weft::errc::closed);
}

bool is_writable(const datagram& one) {
  pollfd asked{.fd = one.native_handle(), .events = POLLOUT, .revents = 0};
  return ::poll(&asked, 1, 0) == 1 && (asked.revents & POLLOUT) != 0;
}
// Until the receiver has no room, or the sender's buffer.
task<> send_until_full(const datagram& from, endpoint to, std::span<const std::byte> data) {
  for (;;) {
    auto sends = select(on(from.send_to(data, to)), weft::otherwise);
    const auto how = co_await as_result(std::move(sends));
    if (how.error()) {
      EXPECT_EQ(how.error(), std::errc::resource_unavailable_try_again);
      co_return;
    }
    if (how->index == 1) co_return;
  }
}
// Whether what is sent there goes on when the receiver has room again.
task<bool> goes_on(const datagram& from, const datagram& to, const datagram& emptied) {
  const auto empties = [&]() -> task<> {
    co_await weft::sleep_for(5ms);
    take_all(emptied);
  };
  const auto sends_by_all = [&]() -> task<> {
    const endpoint where = to.local();
    co_await from.send_to("one", where);
    const std::array<weft::net::outgoing, 1> batch{{{.data = bytes("batch"), .to = where}}};
    co_await from.send_batch(batch);
    co_await from.send_segments_to(bytes("segment"), 16, where);
  };
  auto passing = weft::when_all(sends_by_all(), empties());
  const auto how = co_await as_result(timeout(60s, std::move(passing)));
  co_return !how.error();
}

// The system reports neither when the receiver has room, nor that the sender has, as long as it is not writable.
WEFT_TEST("unix datagrams: who sends to a receiver without room goes on, though it is not writable for others' sake") {
  const datagram to = co_await bind(a_name());
  const datagram other = co_await bind(a_name());
  const datagram filler = co_await bind(a_name());
  const std::vector<std::byte> big(8 << 10);
  {
    const datagram here = co_await bind(a_name());
    while (is_writable(here)) co_await here.send_to(big, other.local());
    co_await send_until_full(filler, to.local(), bytes("x"));
    EXPECT_TRUE(co_await goes_on(here, to, to));
    EXPECT_FALSE(is_writable(here));  // a part of its buffer is the other one's still
    take_all(other);
    take_all(to);
  }
  {
    const datagram here = co_await bind(a_name());
    co_await send_until_full(filler, other.local(), bytes("x"));
    co_await send_until_full(filler, to.local(), bytes("x"));
    here.connect(other.local());
    EXPECT_TRUE(co_await goes_on(here, to, to));
    EXPECT_FALSE(is_writable(here));  // its peer has no room
  }
}

WEFT_TEST("unix datagrams: who waits for its own buffer goes on, though its peer has no room") {
  const datagram peer = co_await bind(a_name());
  const datagram other = co_await bind(a_name());
  const datagram to = co_await bind(a_name());
  const datagram filler = co_await bind(a_name());
  const datagram here = co_await bind(a_name());
  here.set_send_buffer(64 << 10);
  co_await send_until_full(filler, peer.local(), bytes("x"));
  here.connect(peer.local());
  const std::vector<std::byte> big(32 << 10);
  co_await send_until_full(here, other.local(), big);
  auto one_more = select(on(here.send_to("x", to.local())), weft::after(60s));
  EXPECT_EQ((co_await as_result(std::move(one_more))).error(), std::errc::resource_unavailable_try_again);
  EXPECT_TRUE(co_await goes_on(here, to, other));
  EXPECT_FALSE(is_writable(here));
}

// While another one has more than a quarter of the sender's buffer, no room is reported, though there is some.
WEFT_TEST("unix datagrams: who sends to its peer goes on, though others have a part of its buffer") {
  const std::vector<std::byte> big(8 << 10);
  for (int by = 0; by != 4; ++by) {
    const datagram peer = co_await bind(a_name());
    const datagram other = co_await bind(a_name());
    const datagram here = co_await bind(a_name());
    here.set_send_buffer(64 << 10);
    while (is_writable(here)) co_await here.send_to(big, other.local());
    here.connect(peer.local());
    const auto fills = [&]() -> task<> {
      for (;;) co_await here.send(big);
    };
    EXPECT_EQ((co_await as_result(timeout(20ms, fills()))).error(), weft::errc::timed_out);
    const auto sends = [&]() -> task<> {
      const std::array<weft::net::outgoing, 1> batch{{{.data = big}}};
      const std::array<int, 1> number{STDERR_FILENO};
      if (by == 0) co_await here.send(big);
      if (by == 1) co_await here.send_batch(batch);
      if (by == 2) co_await here.send_segments(big, big.size());
      if (by == 3) co_await weft::net::send_descriptors(here, number, big);
    };
    const auto empties = [&]() -> task<> {
      co_await weft::sleep_for(5ms);
      take_all(peer);
    };
    auto passing = weft::when_all(sends(), empties());
    const auto how = co_await as_result(timeout(60s, std::move(passing)));
    EXPECT_FALSE(how.error()) << by;
    EXPECT_FALSE(is_writable(here));  // as it was all the while
  }
}

WEFT_TEST("unix datagrams: one to who has room is sent while others wait for the peer") {
  const datagram peer = co_await bind(a_name());
  const datagram to = co_await bind(a_name());
  const datagram here = co_await bind(a_name());
  here.connect(peer.local());
  const auto sends_to_peer = [&]() -> task<> {
    for (;;) co_await here.send("x");
  };
  const auto sends = [&]() -> task<> {
    co_await weft::sleep_for(5ms);
    co_await here.send_to("y", to.local());
  };
  auto first = weft::when_any(sends_to_peer(), sends());
  const auto how = co_await as_result(timeout(60s, std::move(first)));
  EXPECT_FALSE(how.error());
}

int unread_of(const datagram& one) {
  int count = 0;
  EXPECT_EQ(::ioctl(one.native_handle(), SIOCOUTQ, &count), 0);
  return count;
}
int send_buffer_of(const datagram& one) {
  int size = 0;
  socklen_t length = sizeof size;
  EXPECT_EQ(::getsockopt(one.native_handle(), SOL_SOCKET, SO_SNDBUF, &size, &length), 0);
  return size;
}

// Two tasks of one socket: while the one waits for the peer, the other one sends to somebody else, who leaves it unread.
WEFT_TEST("unix datagrams: who waits for its peer goes on, though others get a part of its buffer meanwhile") {
  const std::vector<std::byte> big(8 << 10);
  const datagram peer = co_await bind(a_name());
  const datagram other = co_await bind(a_name());
  const datagram filler = co_await bind(a_name());
  const datagram here = co_await bind(a_name());
  here.set_send_buffer(64 << 10);
  co_await send_until_full(filler, peer.local(), bytes("x"));
  here.connect(peer.local());
  const auto sends_elsewhere = [&]() -> task<> {
    co_await weft::sleep_for(5ms);
    while (unread_of(here) <= send_buffer_of(here) / 4) co_await here.send_to(big, other.local());
    co_await weft::sleep_for(5ms);
    take_all(peer);
  };
  auto passing = weft::when_all(here.send("x"), sends_elsewhere());
  EXPECT_FALSE((co_await as_result(timeout(60s, std::move(passing)))).error());
}

// The system reports no room from a quarter on, and not only above it.
WEFT_TEST("unix datagrams: who sends to its peer goes on, though others have exactly a quarter of its buffer") {
  const datagram peer = co_await bind(a_name());
  const datagram other = co_await bind(a_name());
  const datagram filler = co_await bind(a_name());
  const datagram here = co_await bind(a_name());
  co_await here.send_to("x", other.local());
  const int each = unread_of(here);  // as the system counts one
  constexpr int count = 8;
  here.set_send_buffer(each * count * 2);  // which Linux doubles
  EXPECT_EQ(send_buffer_of(here), each * count * 4);
  for (int i = 1; i != count; ++i) co_await here.send_to("x", other.local());
  EXPECT_EQ(unread_of(here) * 4, send_buffer_of(here));
  co_await send_until_full(filler, peer.local(), bytes("x"));
  here.connect(peer.local());
  const auto empties = [&]() -> task<> {
    co_await weft::sleep_for(5ms);
    take_all(peer);
  };
  auto passing = weft::when_all(here.send("x"), empties());
  EXPECT_FALSE((co_await as_result(timeout(60s, std::move(passing)))).error());
}

// Whoever has waited for long is told by a socket of its own, and of close() by the one that it sends by.
WEFT_TEST("unix datagrams: who waits for its peer for long goes on, notices close(), and leaves no descriptor") {
  const datagram peer = co_await bind(a_name());
  const datagram filler = co_await bind(a_name());
  datagram here = co_await bind(a_name());
  here.connect(peer.local());
  co_await send_until_full(filler, peer.local(), bytes("x"));
  const std::vector<int> before = open_numbers();
  const auto has_another = [&]() -> task<> {
    while (open_numbers().size() == before.size()) co_await weft::sleep_for(10ms);
  };
  const auto empties = [&]() -> task<> {
    co_await has_another();
    take_all(peer);
  };
  auto passing = weft::when_all(here.send("x"), empties());
  EXPECT_FALSE((co_await as_result(timeout(60s, std::move(passing)))).error());
  EXPECT_EQ(open_numbers(), before);
  co_await send_until_full(filler, peer.local(), bytes("x"));
  const auto closes = [&]() -> task<> {
    co_await has_another();
    here.close();
  };
  auto sending = here.send("x");
  const auto [how, none] = co_await timeout(60s, weft::when_all(as_result(std::move(sending)), closes()));
  EXPECT_EQ(how.error(), weft::errc::closed);
}

// Each try allocates from the socket's buffer, and gives that back: a ring takes this for room.
TEST(unix_datagrams, a_sender_that_waits_for_its_peer_does_not_try_all_the_time) {
  for (const weft::io_backend by : {weft::io_backend::epoll, weft::io_backend::uring}) {
    weft::runtime rt{{.threads = 1, .io = by}};
    const auto body = [&]() -> task<> {
      const datagram peer = co_await bind(a_name());
      const datagram here = co_await bind(a_name());
      here.connect(peer.local());
      co_await send_until_full(here, peer.local(), bytes("x"));
      const std::uint64_t before = rt.stats().changes;
      EXPECT_EQ((co_await as_result(timeout(300ms, here.send("x")))).error(), weft::errc::timed_out);
      EXPECT_LT(rt.stats().changes - before, 500U);
    };
    rt.run(body());
  }
}

// As long as the system takes them, which no endpoint::unix_path() is.
WEFT_TEST("unix datagrams: an answer goes to a path that fills its address") {
  const directory place;
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::string path = place.path + '/';
  path.resize(sizeof address.sun_path, 'p');
  std::memcpy(address.sun_path, path.data(), path.size());
  const int made = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const datagram asks = datagram::adopt(made);
  const datagram answers = co_await bind(a_name());
  co_await asks.send_to("?", answers.local());
  std::array<std::byte, 16> buffer;
  const received_from got = co_await answers.receive_from(buffer);
  EXPECT_EQ(got.from.address(), path);
  co_await answers.send_to("!", got.from);
  co_await asks.receive(buffer);
  EXPECT_EQ(text(std::span{buffer}.first(1)), "!");
}

}  // namespace
