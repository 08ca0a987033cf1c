// Names, by a name server of the test's own, in a runtime and outside of one. See weft/resolve.hpp. As in net_test.cpp,
// WEFT_TEST_IN_RUNTIME has all bodies run in a runtime.
//
// Long because all that a name server may say, and a configuration, is in one file.
#include <weft/resolve.hpp>

#include <fcntl.h>
#include <netdb.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/race.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/timed.hpp>

#include "net/name_server.hpp"
#include "net/open_descriptors.hpp"
#include "net/sockets.hpp"

namespace {

std::atomic<int> lookup_by_system{0};               // what getaddrinfo() says of "host-that-fails.test"
std::atomic<std::size_t> size_of_service_names{0};  // how large a buffer getservbyname_r() wants for "many-names"
std::atomic<int> failure_of_services{0};            // why that one fails; 0: it doesn't

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
extern "C" {
int __real_getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found);
int __real_getservbyname_r(const char* name, const char* protocol, servent* into, char* buffer, std::size_t size,
                           servent** found);

int __wrap_getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
  const std::string_view name{host};
  if (name == "host-named-twice.test") {
    for (addrinfo** last = found; last != nullptr; last = last == found ? &(*found)->ai_next : nullptr)
      if (const int refused = __real_getaddrinfo("10.0.0.1", service, hints, last); refused != 0) return refused;
    return 0;
  }
  if (name != "host-that-fails.test") return __real_getaddrinfo(host, service, hints, found);
  return lookup_by_system;
}

int __wrap_getservbyname_r(const char* name, const char* protocol, servent* into, char* buffer, std::size_t size,
                           servent** found) {
  if (std::string_view{name} != "many-names") return __real_getservbyname_r(name, protocol, into, buffer, size, found);
  *found = nullptr;
  if (failure_of_services != 0) return failure_of_services;
  if (size < size_of_service_names) return ERANGE;
  into->s_port = htons(4'711);
  *found = into;
  return 0;
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

using namespace std::chrono_literals;
using test::answer;
using test::name_server;
using test::open_descriptors;
using test::question;
using weft::as_result;
using weft::task;
using weft::net::address_family;
using weft::net::connect_options;
using weft::net::endpoint;
using weft::net::resolve;
using weft::net::resolve_errc;
using weft::net::resolve_options;

using endpoints = std::vector<endpoint>;

std::string text_of(const endpoints& all) {
  std::string text;
  for (const endpoint& one : all) text += (text.empty() ? "" : " ") + one.to_string();
  return text;
}

// Asks that server, by a body of the test.
task<weft::result<endpoints>> ask(const name_server& server, std::string_view host, std::string_view service = "80",
                                  resolve_options options = {.timeout = 60s}) {
  const endpoint at[] = {server.at()};
  options.servers = at;
  auto asking = as_result(resolve(options, host, service));
  co_return co_await std::move(asking);
}

name_server::answers always(std::vector<std::string> addresses) {
  return [addresses = std::move(addresses)](const question& asked) { return answer(asked, addresses); };
}
std::optional<std::string> nothing(const question&) { return std::nullopt; }

// A file of the test's own.
class temporary_file {
 public:
  explicit temporary_file(std::string_view text) {
    const int number = ::mkstemp(path_.data());
    EXPECT_GE(number, 0);
    EXPECT_EQ(::write(number, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(number);
  }
  temporary_file(const temporary_file&) = delete;
  ~temporary_file() { ::unlink(path_.c_str()); }
  const std::string& path() const noexcept { return path_; }
  void replace(std::string_view text) const {
    const temporary_file other{text};
    EXPECT_EQ(::rename(other.path().c_str(), path_.c_str()), 0);
  }

 private:
  std::string path_ = (std::getenv("TMPDIR") != nullptr ? std::string{std::getenv("TMPDIR")} : std::string{"/tmp"}) +
                      "/weft-resolve-XXXXXX";
};

// ---- without a question ---------------------------------------------------------------------------------------------------

TEST(resolve, needs_nobody_for_numbers) {
  name_server server{nothing};
  const auto body = [&]() -> task<> {
    const auto of = [&](std::string_view host, std::string_view service) { return ask(server, host, service); };
    EXPECT_EQ(text_of(*co_await of("127.0.0.1", "80")), "127.0.0.1:80");
    EXPECT_EQ(text_of(*co_await of("::1", "65535")), "[::1]:65535");
    EXPECT_EQ(text_of(*co_await of("fe80::1%lo", "0")), "[fe80::1%1]:0");
    if (::getservbyname("domain", "tcp") != nullptr) {
      EXPECT_EQ(text_of(*co_await of("10.0.0.1", "domain")), "10.0.0.1:53");
    }
    EXPECT_EQ((co_await of("10.0.0.1", "no-such-service")).error(), resolve_errc::unknown_service);
    EXPECT_EQ((co_await of("10.0.0.1", "")).error(), resolve_errc::unknown_service);
    EXPECT_EQ((co_await of("10.0.0.1", "65536")).error(), resolve_errc::unknown_service);
    EXPECT_EQ((co_await of("10.0.0.1", {"80\0", 3})).error(), resolve_errc::unknown_service);
    EXPECT_EQ((co_await of("fe80::1%no-such-device", "1")).error(), std::errc::no_such_device);
    const auto v6 = co_await ask(server, "10.0.0.1", "1", {.family = address_family::v6});
    EXPECT_EQ(v6.error(), resolve_errc::no_address);
  };
  test::run_body(body());
  EXPECT_EQ(server.asked(), 0);
}

// What belongs to a service may be more than the buffer of the first call holds.
TEST(resolve, finds_services_of_many_names) {
  name_server server{nothing};
  const auto body = [&]() -> task<> {
    size_of_service_names = 100'000;
    EXPECT_EQ(text_of(*co_await ask(server, "10.0.0.1", "many-names")), "10.0.0.1:4711");
    failure_of_services = ENOENT;
    EXPECT_EQ((co_await ask(server, "10.0.0.1", "many-names")).error(), resolve_errc::unknown_service);
    for (const int lack : {ENOMEM, ERANGE}) {
      failure_of_services = lack;
      EXPECT_EQ((co_await ask(server, "10.0.0.1", "many-names")).error(), std::errc::not_enough_memory);
    }
    failure_of_services = 0;
  };
  test::run_body(body());
}

TEST(resolve, asks_nobody_for_what_is_no_name) {
  name_server server{nothing};
  const auto body = [&]() -> task<> {
    const std::string long_label(64, 'a'), long_name = std::string(63, 'b') + '.' + std::string(63, 'b') + '.' +
                                                       std::string(63, 'b') + '.' + std::string(63, 'b');
    for (const std::string& name :
         {std::string{}, std::string{"."}, std::string{".test"}, std::string{"a..test"}, std::string{"a\0b", 3},
          std::string{"test.."}, long_label, long_label + ".test", long_name})
      EXPECT_EQ((co_await ask(server, name)).error(), resolve_errc::bad_name) << name;
    const auto how = co_await ask(server, "a..b", "many-names");
    try {
      static_cast<void>(how.value());
    } catch (const weft::error& failure) {
      EXPECT_EQ(std::string{failure.what()}, "resolve a..b, service many-names: that can't be a name");
    }
  };
  test::run_body(body());
  EXPECT_EQ(server.asked(), 0);
}

// The system would take the first ones for addresses, where c-ares would ask for them.
TEST(resolve, takes_no_old_forms_of_addresses) {
  name_server server{always({"10.0.0.7"})};
  const auto body = [&]() -> task<> {
    for (const std::string_view name : {"127.1", "127.0.1", "0x7f.1", "0x7F000001", "017700000001", "2130706433", "0",
                                        "127.0.0.0X1", "10.0.0.256", "10.0.0.1.2", "10.0.0.1.", "db.test.7", "0x"}) {
      for (const auto by : {weft::net::resolver::automatic, weft::net::resolver::system}) {
        const auto how = co_await ask(server, name, "80", {.by = by, .timeout = 60s});
        EXPECT_EQ(how.error(), resolve_errc::bad_name) << name;
      }
    }
    EXPECT_EQ(server.asked(), 0);
    for (const std::string_view name : {"7.test.", "127.1.a.", "7f.", "0x7g.", "1x7."})
      EXPECT_EQ(text_of(*co_await ask(server, name)), "10.0.0.7:80") << name;
  };
  test::run_body(body());
}

TEST(resolve, says_what_its_codes_mean) {
  const std::error_category& category = weft::net::resolve_category();
  EXPECT_STREQ(category.name(), "weft.resolve");
  for (int code = 1; code != 12; ++code) EXPECT_EQ(category.message(code).find("unknown"), std::string::npos) << code;
  EXPECT_EQ(category.message(99), "unknown error 99");
}

TEST(resolve, knows_localhost) {
  const auto body = []() -> task<> {
    const endpoints v4 = co_await resolve({.family = address_family::v4}, "localhost", "7");
    EXPECT_EQ(text_of(v4), "127.0.0.1:7");
    for (const endpoint& one : co_await resolve("localhost", "80")) {
      EXPECT_TRUE(one == endpoint("127.0.0.1", 80) || one == endpoint("::1", 80)) << one.to_string();
    }
  };
  test::run_body(body());
}

// Whatever the machine's own file names.
TEST(resolve, reads_the_hosts_file) {
  std::map<std::string, std::string> named;
  std::ifstream file{"/etc/hosts"};
  for (std::string line; std::getline(file, line);) {
    std::istringstream words{line.substr(0, line.find('#'))};
    std::string address, name;
    if (words >> address && address.find(':') == address.npos)
      while (words >> name)
        if (name.find("localhost") == name.npos && address.starts_with("1") && !named.contains(name))
          named[name] = address;
  }
  if (named.empty()) GTEST_SKIP() << "/etc/hosts names nobody";
  name_server server{nothing};
  const auto body = [&]() -> task<> {
    for (const auto& [name, address] : named) {
      const auto found = co_await ask(server, name, "1", {.family = address_family::v4});
      EXPECT_NE((" " + text_of(*found) + " ").find(" " + address + ":1 "), std::string::npos) << name;
    }
  };
  test::run_body(body());
  EXPECT_EQ(server.asked(), 0);
}

// ---- answers ----------------------------------------------------------------------------------------------------------------

TEST(resolve, gives_no_address_twice) {
  name_server server{always({"10.0.0.1", "10.0.0.1", "10.0.0.2"})};
  const auto body = [&]() -> task<> {
    const auto found = co_await ask(server, "twice.test", "80", {.family = address_family::v4});
    EXPECT_EQ(found->size(), 2u) << text_of(*found);
  };
  test::run_body(body());
}

TEST(resolve, gives_all_addresses) {
  name_server server{always({"10.0.0.7", "10.0.0.8", "2001:db8::7"})};
  const auto body = [&]() -> task<> {
    endpoints all = *co_await ask(server, "db.test", "5432");
    std::ranges::sort(all);
    EXPECT_EQ(text_of(all), "10.0.0.7:5432 10.0.0.8:5432 [2001:db8::7]:5432");
    endpoints v4 = *co_await ask(server, "db.test", "1", {.family = address_family::v4});
    std::ranges::sort(v4);
    EXPECT_EQ(text_of(v4), "10.0.0.7:1 10.0.0.8:1");
    EXPECT_EQ(text_of(*co_await ask(server, "db.test.", "1", {.family = address_family::v6})), "[2001:db8::7]:1");
  };
  test::run_body(body());
}

// RFC 6724: what can be reached from here comes first, and of one family what is nearer.
TEST(resolve, sorts_addresses) {
  name_server server{always({"203.0.113.9", "127.0.0.9"})};
  const auto body = [&]() -> task<> {
    const auto all = co_await ask(server, "db.test", "1", {.family = address_family::v4});
    EXPECT_EQ(text_of(*all), "127.0.0.9:1 203.0.113.9:1");
  };
  test::run_body(body());
}

TEST(resolve, follows_aliases) {
  name_server server{[](const question& asked) { return answer(asked, {"10.0.0.7"}, {.canonical = "other.test"}); }};
  const auto body = [&]() -> task<> { EXPECT_EQ(text_of(*co_await ask(server, "db.test")), "10.0.0.7:80"); };
  test::run_body(body());
}

TEST(resolve, takes_one_family_where_the_other_fails) {
  name_server server{[](const question& asked) {
    return asked.type == test::a_record ? answer(asked, {"10.0.0.7"}) : answer(asked, {}, {.code = 2});
  }};
  const auto body = [&]() -> task<> { EXPECT_EQ(text_of(*co_await ask(server, "db.test")), "10.0.0.7:80"); };
  test::run_body(body());
}

TEST(resolve, asks_by_tcp_where_the_answer_is_truncated) {
  std::vector<std::string> many;
  for (int i = 0; i != 200; ++i) many.push_back("10.0.1." + std::to_string(i));
  name_server server{[&many](const question& asked) {
    return asked.by_tcp ? answer(asked, many) : answer(asked, {"10.0.0.1"}, {.is_truncated = true});
  }};
  const auto body = [&]() -> task<> {
    const auto all = co_await ask(server, "db.test", "80", {.family = address_family::v4, .timeout = 60s});
    EXPECT_EQ((*all).size(), 200U);
  };
  test::run_body(body());
  EXPECT_GT(server.asked_by_tcp(), 0);
}

TEST(resolve, tells_why_it_has_failed) {
  struct {
    unsigned code;
    resolve_errc expected;
  } const all[] = {{0, resolve_errc::no_address}, {1, resolve_errc::not_understood}, {2, resolve_errc::server_failed},
                   {3, resolve_errc::not_found},  {4, resolve_errc::not_understood}, {5, resolve_errc::refused}};
  for (const auto& one : all) {
    name_server server{[&](const question& asked) { return answer(asked, {}, {.code = one.code}); }};
    const auto body = [&]() -> task<> {
      const auto how = co_await ask(server, "db.test.", "80", {.timeout = 60s, .tries = 1});
      EXPECT_EQ(how.error(), one.expected) << one.code << ": " << how.error().message();
    };
    test::run_body(body());
    EXPECT_GT(server.asked(), 0);
  }
}

// The two questions of a lookup, each of which ends in its own way, in either order. That there is no address, or no such name, is
// said only where the answers to both say so: what has failed for one family may be there the next time.
TEST(resolve, says_that_there_is_nothing_only_where_both_families_say_so) {
  using enum resolve_errc;
  struct end {
    const char* name;
    name_server::answers says;
    std::optional<resolve_errc> alone{};  // how a lookup of that family alone ends; nothing: with an address
  };
  const auto code = [](unsigned of) { return [of](const question& asked) { return answer(asked, {}, {.code = of}); }; };
  const auto by_tcp = [](unsigned of) {
    return [of](const question& asked) {
      return asked.by_tcp ? answer(asked, {}, {.code = of}) : answer(asked, {}, {.is_truncated = true});
    };
  };
  const end ends[] = {{"an address", always({"10.0.0.7", "2001:db8::7"})},
                      {"no address", code(0), no_address},
                      {"no address, by TCP", by_tcp(0), no_address},
                      {"no such name", code(3), not_found},
                      {"a question that is malformed", code(1), not_understood},
                      {"a failure", code(2), server_failed},
                      {"a failure, by TCP", by_tcp(2), unreachable},
                      {"a question that is not implemented", code(4), not_understood},
                      {"a refusal", code(5), refused},
                      {"nothing", nothing, no_answer}};
  const auto is_nothing = [](std::optional<resolve_errc> of) { return of == no_address || of == not_found; };

  const auto try_both = [&](const end& first, const end& second, std::uint16_t type_of_first) {
    SCOPED_TRACE(std::string{type_of_first == test::a_record ? "A: " : "AAAA: "} + first.name + ", then " +
                 second.name);
    bool has_first = false;
    std::optional<std::string> held;  // the answer to the second question, until the first one has its own
    name_server* self = nullptr;
    name_server server{[&](const question& asked) -> std::optional<std::string> {
      if (asked.type == type_of_first) {
        std::optional<std::string> back = first.says(asked);
        has_first = true;
        if (!held) return back;
        if (back) self->send_again(*back);
        return std::exchange(held, std::nullopt);
      }
      std::optional<std::string> back = second.says(asked);
      if (has_first || asked.by_tcp) return back;
      held = std::move(back);
      return std::nullopt;
    }};
    self = &server;
    const bool has_address = !first.alone || !second.alone;
    const bool may_be_late = first.alone == no_answer || second.alone == no_answer;  // then so may be the other one
    const auto is_expected = [&](std::error_code why) {
      const bool both = is_nothing(first.alone) && is_nothing(second.alone);
      return std::ranges::any_of(std::array{first.alone, second.alone}, [&](std::optional<resolve_errc> one) {
        return one && why == *one && (both || !is_nothing(one));
      });
    };
    const auto body = [&]() -> task<> {
      const auto how = co_await ask(server, "db.test.", "80", {.timeout = may_be_late ? 20ms : 60s, .tries = 1});
      if (how.has_value()) {
        EXPECT_TRUE(has_address);
      } else {
        EXPECT_TRUE(is_expected(how.error()) && (!has_address || may_be_late)) << how.error().message();
      }
    };
    test::run_body(body());
  };
  for (const end& first : ends)
    for (const end& second : ends)
      for (const std::uint16_t type_of_first : {test::a_record, test::aaaa_record})
        try_both(first, second, type_of_first);
}

TEST(resolve, asks_a_server_that_has_failed_once_more) {
  std::atomic<int> failed{0};
  name_server server{[&](const question& asked) {
    return failed++ < 2 ? answer(asked, {}, {.code = 2}) : answer(asked, {"10.0.0.7"});
  }};
  const auto body = [&]() -> task<> { EXPECT_EQ(text_of(*co_await ask(server, "db.test.")), "10.0.0.7:80"); };
  test::run_body(body());
}

TEST(resolve, asks_the_next_server_where_one_fails) {
  name_server bad{[](const question& asked) { return answer(asked, {}, {.code = 2}); }}, good{always({"10.0.0.7"})};
  const auto body = [&]() -> task<> {
    const endpoint both[] = {bad.at(), good.at()};
    EXPECT_EQ(text_of(co_await resolve({.servers = both, .timeout = 60s}, "db.test.", "80")), "10.0.0.7:80");
  };
  test::run_body(body());
  EXPECT_GT(bad.asked(), 0);
  EXPECT_GT(good.asked(), 0);
}

TEST(resolve, gives_up_where_nobody_answers) {
  name_server server{nothing};
  const auto body = [&]() -> task<> {
    const auto how = co_await ask(server, "db.test.", "80", {.timeout = 20ms, .tries = 3});
    EXPECT_EQ(how.error(), resolve_errc::no_answer) << how.error().message();
  };
  test::run_body(body());
  while (server.asked() < 6) std::this_thread::yield();  // it may be late
  EXPECT_EQ(server.asked(), 6);
}

// The first answer is lost.
TEST(resolve, asks_again_where_nobody_answers) {
  std::mutex lock;
  std::map<std::uint16_t, int> asked_for;
  name_server server{[&](const question& asked) -> std::optional<std::string> {
    const std::lock_guard guard{lock};
    if (asked_for[asked.type]++ == 0) return std::nullopt;
    return answer(asked, {"10.0.0.7"});
  }};
  const auto body = [&]() -> task<> {
    const auto how = co_await ask(server, "db.test.", "80", {.timeout = 20ms, .tries = 10});
    EXPECT_EQ(text_of(*how), "10.0.0.7:80");
  };
  test::run_body(body());
}

TEST(resolve, tells_where_no_server_is_there) {
  std::optional<endpoint> nobody;
  {
    const name_server gone{nothing};
    nobody = gone.at();
  }
  const auto body = [&]() -> task<> {
    const endpoint at[] = {*nobody};
    auto asking = as_result(resolve({.servers = at, .timeout = 60s, .tries = 2}, "db.test.", "80"));
    EXPECT_EQ((co_await std::move(asking)).error(), resolve_errc::unreachable);
  };
  test::run_body(body());
}

// An answer to something else is none.
TEST(resolve, takes_no_answers_to_other_questions) {
  name_server server{[](const question& asked) -> std::optional<std::string> {
    std::string wrong_id = answer(asked, {"10.6.6.6"});
    wrong_id[0] = static_cast<char>(wrong_id[0] ^ 0x55);
    return wrong_id;
  }};
  name_server other{[](const question& asked) -> std::optional<std::string> {
    std::string wrong_name = answer(asked, {"10.6.6.6"});
    wrong_name[13] = static_cast<char>(wrong_name[13] ^ 1);
    return wrong_name;
  }};
  const auto body = [&]() -> task<> {
    for (const name_server* one : {&server, &other}) {
      const auto how = co_await ask(*one, "db.test.", "80", {.timeout = 20ms, .tries = 2});
      EXPECT_EQ(how.error(), resolve_errc::no_answer) << how.error().message();
    }
  };
  test::run_body(body());
}

// Each of its beginnings: whatever comes of it, it comes, and it is no address that was not there.
TEST(resolve, survives_answers_that_are_cut) {
  std::atomic<std::size_t> cut{0};
  std::atomic<std::size_t> whole{0};
  name_server server{[&](const question& asked) {
    std::string full = answer(asked, {"10.0.0.7", "10.0.0.8"}, {.canonical = "other.test"});
    whole = full.size();
    return full.substr(0, cut);
  }};
  const auto body = [&]() -> task<> {
    const resolve_options options{.family = address_family::v4, .timeout = 5ms, .tries = 1};
    for (cut = 1; whole == 0 || cut < whole; ++cut) {
      const auto how = co_await ask(server, "db.test.", "80", options);
      if (how.has_value()) {
        for (const endpoint& one : *how) {
          EXPECT_TRUE(one == endpoint("10.0.0.7", 80) || one == endpoint("10.0.0.8", 80)) << cut;
        }
      } else {
        EXPECT_EQ(how.error().category(), weft::net::resolve_category()) << cut << ": " << how.error().message();
      }
      if (cut < 12) {
        EXPECT_EQ(how.error(), resolve_errc::no_answer);
      }
    }
    EXPECT_EQ((co_await ask(server, "db.test.", "80", {.family = address_family::v4, .timeout = 60s}))->size(), 2U);
  };
  test::run_body(body());
}

// ---- the configuration --------------------------------------------------------------------------------------------------------

TEST(resolve, has_a_search_list) {
  std::mutex lock;
  std::vector<std::string> names;
  name_server server{[&](const question& asked) {
    const std::lock_guard guard{lock};
    names.push_back(asked.name);
    return asked.name == "db.two.test" ? answer(asked, {"10.0.0.7"}) : answer(asked, {}, {.code = 3});
  }};
  const temporary_file configuration{"nameserver 127.0.0.1\nsearch one.test two.test\noptions ndots:1\n"};
  const auto body = [&]() -> task<> {
    const resolve_options options{
        .family = address_family::v4, .timeout = 60s, .configuration = configuration.path(), .port = server.port()};
    EXPECT_EQ(text_of(co_await resolve(options, "db", "80")), "10.0.0.7:80");
    auto asking = as_result(resolve(options, "db.", "80"));
    EXPECT_EQ((co_await std::move(asking)).error(), resolve_errc::not_found);
  };
  test::run_body(body());
  const std::lock_guard guard{lock};
  EXPECT_EQ(names, (std::vector<std::string>{"db.one.test", "db.two.test", "db"}));
}

TEST(resolve, reads_a_configuration_that_has_changed) {
  name_server server{
      [](const question& asked) { return answer(asked, {asked.name == "db.new.test" ? "10.0.0.2" : "10.0.0.1"}); }};
  const temporary_file configuration{"nameserver 127.0.0.1\nsearch old.test\n"};
  const auto body = [&]() -> task<> {
    const resolve_options options{
        .family = address_family::v4, .timeout = 60s, .configuration = configuration.path(), .port = server.port()};
    EXPECT_EQ(text_of(co_await resolve(options, "db", "80")), "10.0.0.1:80");
    configuration.replace("nameserver 127.0.0.1\nsearch new.test\n");
    while (text_of(co_await resolve(options, "db", "80")) != "10.0.0.2:80") co_await weft::sleep_for(10ms);
  };
  test::run_body(body());
}

TEST(resolve, goes_by_the_system_where_it_is_asked_to) {
  const auto body = []() -> task<> {
    const resolve_options options{.family = address_family::v4, .by = weft::net::resolver::system};
    EXPECT_EQ(text_of(co_await resolve(options, "localhost", "7")), "127.0.0.1:7");
    EXPECT_EQ(text_of(co_await resolve(options, "host-named-twice.test", "7")), "10.0.0.1:7");
    auto asking = as_result(resolve(options, "name-that-is-none.invalid", "7"));
    const auto how = co_await std::move(asking);
    EXPECT_EQ(how.error().category(), weft::net::resolve_category());
  };
  test::run_body(body());
}

TEST(resolve, tells_why_the_system_has_failed) {
  const struct {
    int status;
    std::error_code expected;
  } all[] = {{EAI_NONAME, resolve_errc::not_found},
             {EAI_NODATA, resolve_errc::no_address},
             {EAI_AGAIN, resolve_errc::no_answer},
             {EAI_FAIL, resolve_errc::server_failed},
             {EAI_MEMORY, std::make_error_code(std::errc::not_enough_memory)}};
  const auto body = [&]() -> task<> {
    for (const auto& one : all) {
      lookup_by_system = one.status;
      auto asking = as_result(resolve({.by = weft::net::resolver::system}, "host-that-fails.test", "7"));
      EXPECT_EQ((co_await std::move(asking)).error(), one.expected) << one.status;
    }
  };
  test::run_body(body());
}

// ---- many at once, and stops ----------------------------------------------------------------------------------------------------

task<int> ask_many(const name_server& server, int count) {
  std::vector<task<weft::result<endpoints>>> those;
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(count));
  const resolve_options options{.timeout = 200ms, .tries = 20};  // the server's socket may have no room for all
  for (int i = 0; i != count; ++i)
    those.push_back(ask(server, names.emplace_back("host-" + std::to_string(i) + ".test"), "80", options));
  int right = 0, i = 0;
  for (const auto& one : co_await weft::when_all(std::move(those)))
    if (one.has_value() && text_of(*one) == "10.1.0." + std::to_string(i++ % 200) + ":80") ++right;
  co_return right;
}
name_server::answers by_number() {
  return [](const question& asked) {
    return answer(asked, {"10.1.0." + std::to_string(std::stoi(asked.name.substr(5)) % 200)});
  };
}

TEST(resolve, goes_on_many_times_at_once) {
  name_server server{by_number()};
  const std::size_t open = open_descriptors();
  for (const unsigned threads : {1U, 2U, 4U}) {
    weft::runtime rt{{.threads = threads}};
    EXPECT_EQ(rt.run(ask_many(server, 200)), 200);
    EXPECT_EQ(rt.stats().watched, 0U);
  }
  EXPECT_EQ(weft::sync_wait(ask_many(server, 50)), 50);
  weft::pool pool{{.threads = 2}};
  EXPECT_EQ(pool.run(ask_many(server, 50)), 50);
  EXPECT_LE(open_descriptors(), open + 3);  // the process's own set has come, perhaps
}

TEST(resolve, works_in_fibers_and_on_threads) {
  name_server server{by_number()};
  weft::runtime rt{{.threads = 2}};
  const auto body = [&](weft::scope& inside) -> task<std::string> {
    auto fiber = inside.go([&] { return text_of(*weft::await(ask(server, "host-7.test"))); });
    co_return co_await std::move(fiber);
  };
  EXPECT_EQ(rt.run(weft::with_scope(body)), "10.1.0.7:80");
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t != 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i != 20; ++i)
        if (text_of(*weft::sync_wait(ask(server, "host-9.test"))) == "10.1.0.9:80") ++right;
    });
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(right, 80);
}

// Those that lead and those that do not are stopped at random; the others have their answers.
TEST(resolve, goes_on_where_others_are_stopped) {
  name_server server{[](const question& asked) -> std::optional<std::string> {
    if (asked.name.starts_with("silent")) return std::nullopt;
    return by_number()(asked);
  }};
  const std::size_t open = open_descriptors();
  {
    weft::runtime rt{{.threads = 2}};
    const auto body = [&](weft::scope& inside) -> task<int> {
      for (int round = 0; round != test::rounds(30); ++round) {
        auto leads = inside.fork(ask(server, "silent.test."));
        auto also = inside.fork(ask(server, "silent-too.test."));
        auto asks = inside.fork(ask_many(server, 8));
        if (round % 2 == 0) co_await weft::sleep_for(100us);
        leads.request_stop();
        const int right = co_await std::move(asks);
        EXPECT_EQ(right, 8);
        also.request_stop();
      }
      co_return 0;
    };
    static_cast<void>(rt.run(weft::with_scope(body)));
    EXPECT_EQ(rt.stats().watched, 0U);
  }
  EXPECT_LE(open_descriptors(), open);
}

// Also where there always is one under way, so that its socket stays.
TEST(resolve, does_not_keep_its_port_for_long) {
  std::mutex lock;
  std::set<std::uint16_t> ports;
  name_server server{[&](const question& asked) -> std::optional<std::string> {
    if (asked.name == "silent.test") return std::nullopt;
    const std::lock_guard guard{lock};
    ports.insert(asked.from);
    return answer(asked, {"10.0.0.7"});
  }};
  weft::runtime rt{{.threads = 1}};
  const auto seen = [&] {
    const std::lock_guard guard{lock};
    return ports.size();
  };
  const auto body = [&](weft::scope& inside) -> task<> {
    const endpoint at[] = {server.at()};
    const resolve_options options{.family = address_family::v4, .servers = at, .timeout = 1h};
    auto silent = inside.fork(resolve(options, "silent.test.", "80"));
    static_cast<void>(co_await resolve(options, "db.test.", "80"));
    static_cast<void>(co_await resolve(options, "db.test.", "80"));
    EXPECT_EQ(seen(), 1U);
    for (int i = 0; i != 1'000; ++i) static_cast<void>(co_await resolve(options, "db.test.", "80"));
    EXPECT_GE(seen(), 2U);
    silent.request_stop();
  };
  rt.run(weft::with_scope(body));
}

// A channel is busy with others' lookups all the time. What its servers, and the system where addresses are sorted, have
// said to those is no reason for another one to fail.
TEST(resolve, tells_no_reasons_of_others) {
  name_server server{[](const question& asked) -> std::optional<std::string> {
    if (asked.name == "silent.test") return std::nullopt;
    if (asked.name == "refused.test") return answer(asked, {}, {.code = 5});
    if (asked.name == "broadcast.test") return answer(asked, {"255.255.255.255", "10.0.0.7"});
    return asked.by_tcp ? answer(asked, {}, {.code = 2}) : answer(asked, {"10.0.0.1"}, {.is_truncated = true});
  }};
  weft::runtime rt{{.threads = 1}};
  const auto body = [&](weft::scope& inside) -> task<> {
    const endpoint at[] = {server.at()};
    const resolve_options options{.family = address_family::v4, .servers = at, .timeout = 1h, .tries = 1};
    auto silent = inside.fork(resolve(options, "silent.test.", "80"));
    const auto failure = [&]() -> task<std::error_code> {
      auto asking = as_result(resolve(options, "failed.test.", "80"));
      co_return (co_await std::move(asking)).error();
    };
    const std::error_code why = co_await failure();
    auto refused = as_result(resolve(options, "refused.test.", "80"));
    EXPECT_EQ((co_await std::move(refused)).error(), resolve_errc::refused);
    EXPECT_EQ(co_await failure(), why);
    EXPECT_EQ((co_await resolve(options, "broadcast.test.", "80")).size(), 2U);
    EXPECT_EQ(co_await failure(), why);
    silent.request_stop();
  };
  rt.run(weft::with_scope(body));
}

// Nor is it one to find nothing where there is something, or something else where there is nothing.
TEST(resolve, tells_each_its_own_end_beside_others_that_fail) {
  name_server server{[](const question& asked) {
    if (asked.name == "known.test") return answer(asked, {"10.0.0.7"});
    return answer(asked, {}, {.code = asked.name == "empty.test" ? 0U : asked.name == "unknown.test" ? 3U : 2U});
  }};
  const struct {
    std::string_view host;
    std::error_code why;
  } names[] = {{"known.test.", {}},
               {"empty.test.", resolve_errc::no_address},
               {"unknown.test.", resolve_errc::not_found},
               {"failed.test.", resolve_errc::server_failed}};
  const int times = test::rounds(50);
  const auto asks = [&](std::size_t first) -> task<> {
    for (int i = 0; i != times; ++i) {
      const auto& one = names[(first + static_cast<std::size_t>(i)) % std::size(names)];
      const auto how = co_await ask(server, one.host);
      EXPECT_EQ(how.error(), one.why) << one.host;
    }
  };
  weft::runtime rt{{.threads = 2}};
  const auto body = [&]() -> task<> {
    std::vector<task<>> those;
    for (std::size_t i = 0; i != 8; ++i) those.push_back(asks(i));
    co_await weft::when_all(std::move(those));
  };
  rt.run(body());
}

TEST(resolve, is_stopped_at_once) {
  name_server server{nothing};
  const auto body = [&]() -> task<> {
    const endpoint at[] = {server.at()};
    auto asking = as_result(weft::timeout(5ms, resolve({.servers = at, .timeout = 1h}, "db.test.", "80")));
    const auto how = co_await std::move(asking);
    EXPECT_EQ(how.error(), weft::errc::timed_out);
  };
  test::run_body(body());
}

// The state of the parent's lookups is not the child's.
TEST(resolve, works_in_a_child_that_was_forked) {
#if defined(WEFT_TEST_TSAN)
  GTEST_SKIP() << "the sanitizer allows no threads in a child of several";
#endif
  name_server server{always({"10.0.0.7"})};
  EXPECT_EQ(text_of(*weft::sync_wait(ask(server, "db.test"))), "10.0.0.7:80");
  const ::pid_t child = ::fork();
  if (child == 0) {
    const auto body = [&]() -> task<bool> {
      const auto how = co_await ask(server, "db.test");
      co_return how.has_value() && text_of(*how) == "10.0.0.7:80";
    };
    ::_exit(weft::runtime{{.threads = 1}}.run(body()) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(resolve_misuse, of_options) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(static_cast<void>(resolve({.timeout = -1s}, "a", "b")), "resolve\\(\\) was given a timeout below zero");
  EXPECT_DEATH(static_cast<void>(weft::net::connect(connect_options{.delay = -1s}, "a", "b")), "a delay below zero");
  EXPECT_DEATH(static_cast<void>(weft::net::connect(connect_options{.timeout = -1s}, "a", "b")),
               "a timeout below zero");
}

}  // namespace
