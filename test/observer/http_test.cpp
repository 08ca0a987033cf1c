// The observer by HTTP: who gets what, and what the answers carry.
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>
#include <weft/observer.hpp>
#include <weft/pool.hpp>

#include "observer/asking.hpp"
#include "observer/http.hpp"
#include "support/weft_test.hpp"

namespace w = weft;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

struct observed {
  explicit observed(std::chrono::milliseconds patience = 10min)
      : watching{{.http = true, .directory = where.path().c_str(), .patience = patience}} {}

  test::own_directory where;
  w::observer watching;

  std::string port() const { return std::to_string(watching.http_port()); }
  std::string token() const { return std::string{watching.token()}; }
  // With these fields, and no others.
  std::string raw(const std::string& line, const std::string& fields) const {
    return test::raw_http(watching.http_port(), line + "\r\n" + fields + "\r\n");
  }
};

std::string text_in(const std::string& path) {
  std::ifstream from{path};
  return {std::istreambuf_iterator<char>{from}, {}};
}

}  // namespace

TEST(observer_http, the_token_is_in_a_file_that_only_this_user_can_read) {
  const observed here;
  struct stat found{};
  const std::string path{here.watching.token_path()};
  ASSERT_EQ(::lstat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0600U);
  EXPECT_EQ(text_in(path), here.token() + "\n");
  EXPECT_EQ(here.token().size(), 64U);
  test::asking one{here.watching.socket_path()};
  const json access = json::parse(one.ask("access"))["access"];
  EXPECT_EQ(access["http"], "http://127.0.0.1:" + here.port() + "/");
  EXPECT_EQ(access["token"], here.token());
}

TEST(observer_http, a_token_may_come_from_a_private_file_and_from_no_other) {
  const test::own_directory where;
  const std::string file = where.below("token");
  const auto with = [&](const std::string& text, mode_t mode) -> std::string {
    std::ofstream{file} << text;
    ::chmod(file.c_str(), mode);
    try {
      const w::observer one{{.socket = false, .http = true, .token_file = file.c_str()}};
      return std::string{one.token()};
    } catch (const w::error& failure) {
      return failure.what();
    }
  };
  EXPECT_EQ(with("0123456789abcdef\n", 0600), "0123456789abcdef");
  EXPECT_NE(with("0123456789abcdef\n", 0640).find("others may read"), std::string::npos);
  EXPECT_NE(with("short\n", 0600).find("16 characters"), std::string::npos);
  EXPECT_NE(with("0123456789 abcdef\n", 0600).find("16 characters"), std::string::npos);
}

TEST(observer_http, each_path_needs_the_token) {
  const observed here;
  const std::string host = "Host: 127.0.0.1:" + here.port() + "\r\nConnection: close\r\n";
  const std::string good = "Authorization: Bearer " + here.token() + "\r\n";
  for (const std::string path : {"/", "/metrics", "/all.json", "/snapshot.json", "/deadlocks.json", "/stalls.json",
                                 "/snapshot.dot", "/nothing"}) {
    const std::string line = "GET " + path + " HTTP/1.1";
    EXPECT_EQ(test::status_of(here.raw(line, host + good)),
              path == "/nothing" ? "HTTP/1.1 404 Not Found" : "HTTP/1.1 200 OK");
    std::vector<std::string> bad{"",
                                 "Authorization: Bearer \r\n",
                                 "Authorization: Bearer x\r\n",
                                 "Authorization: Basic " + here.token() + "\r\n",
                                 "Authorization: " + here.token() + "\r\n",
                                 good + good,
                                 "Authorization: Bearer " + here.token() + "0\r\n",
                                 "Authorization: Bearer " + here.token().substr(0, 63) + "\r\n",
                                 "Cookie: token=" + here.token() + "\r\n",
                                 "X-Authorization: Bearer " + here.token() + "\r\n"};
    for (const std::string& fields : bad) {
      const std::string answer = here.raw(line, host + fields);
      EXPECT_EQ(test::status_of(answer), "HTTP/1.1 401 Unauthorized") << path << " " << fields;
      EXPECT_EQ(answer.find(here.token()), std::string::npos);
      EXPECT_NE(answer.find("WWW-Authenticate: Bearer"), std::string::npos);
    }
    const std::string in_url = "GET " + path + "?token=" + here.token() + " HTTP/1.1";
    EXPECT_EQ(test::status_of(here.raw(in_url, host)), "HTTP/1.1 401 Unauthorized");
    EXPECT_EQ(test::status_of(here.raw(in_url, host + good)), "HTTP/1.1 404 Not Found");
  }
}

TEST(observer_http, a_strangers_page_gets_nothing_even_with_the_token) {
  const observed here;
  const std::string good = "Connection: close\r\nAuthorization: Bearer " + here.token() + "\r\n";
  const std::string host = "Host: 127.0.0.1:" + here.port() + "\r\n";
  const auto status = [&](const std::string& fields) {
    return test::status_of(here.raw("GET /metrics HTTP/1.1", good + fields)).substr(9, 3);
  };
  EXPECT_EQ(status(host), "200");
  EXPECT_EQ(status("Host: localhost:" + here.port() + "\r\n"), "200");
  EXPECT_EQ(status("Host: LOCALHOST:" + here.port() + "\r\n"), "200");
  for (const std::string& name :
       std::vector<std::string>{"evil.example", "127.0.0.1", "localhost", "127.0.0.1.evil.example:" + here.port(),
                                "0.0.0.0:" + here.port(), "", "127.0.0.1:1"})
    EXPECT_EQ(status("Host: " + name + "\r\n"), "421") << name;
  EXPECT_EQ(status(""), "400");
  EXPECT_EQ(status(host + host), "400");
  EXPECT_EQ(status(host + "Origin: http://127.0.0.1:" + here.port() + "\r\n"), "200");
  EXPECT_EQ(status(host + "Origin: http://localhost:" + here.port() + "\r\n"), "200");
  for (const std::string& origin : std::vector<std::string>{
           "null", "http://evil.example", "https://127.0.0.1:" + here.port(), "http://127.0.0.1", "x"})
    EXPECT_EQ(status(host + "Origin: " + origin + "\r\n"), "403") << origin;
  EXPECT_EQ(status(host + "Sec-Fetch-Site: same-origin\r\n"), "200");
  EXPECT_EQ(status(host + "Sec-Fetch-Site: none\r\n"), "200");
  EXPECT_EQ(status(host + "Sec-Fetch-Site: cross-site\r\n"), "403");
  EXPECT_EQ(status(host + "Sec-Fetch-Site: same-site\r\n"), "403");
  // But a link to the page, which holds nothing, may lie anywhere.
  EXPECT_EQ(test::status_of(here.raw("GET / HTTP/1.1", host + "Connection: close\r\nSec-Fetch-Site: cross-site\r\n")),
            "HTTP/1.1 401 Unauthorized");
}

TEST(observer_http, there_are_no_files_and_no_other_methods) {
  const observed here;
  for (const std::string& path : std::vector<std::string>{"/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/",
                                                          "//", "/metrics/", "/./metrics", "/metrics%00", "/METRICS",
                                                          "/page.html", "http://127.0.0.1:" + here.port() + "/metrics"})
    EXPECT_EQ(test::status_of(test::get(here.watching, path)), "HTTP/1.1 404 Not Found") << path;
  for (const std::string method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"})
    EXPECT_EQ(test::status_of(test::get(here.watching, "/metrics", "", method)), "HTTP/1.1 405 Method Not Allowed")
        << method;
  EXPECT_EQ(test::status_of(test::get(here.watching, "/metrics", "Content-Length: 5\r\n")),
            "HTTP/1.1 413 Content Too Large");
  EXPECT_EQ(test::status_of(test::get(here.watching, "/metrics", "Transfer-Encoding: chunked\r\n")),
            "HTTP/1.1 413 Content Too Large");
  const std::string head = test::get(here.watching, "/metrics", "", "HEAD");
  EXPECT_EQ(test::status_of(head), "HTTP/1.1 200 OK");
  EXPECT_EQ(test::body_of(head), "");
}

TEST(observer_http, garbage_and_what_is_too_large_end_the_connection) {
  const observed here;
  for (const std::string_view wrong :
       {"\r\n\r\nhello\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\x01",
        "GET / HTTP/1.1\nHost\n\n", "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"})
    EXPECT_EQ(test::status_of(test::raw_http(here.watching.http_port(), wrong)).substr(0, 12), "HTTP/1.1 400") << wrong;
  EXPECT_EQ(test::status_of(test::get(here.watching, "/metrics", "X: " + std::string(20'000, 'x') + "\r\n")),
            "HTTP/1.1 431 Request Header Fields Too Large");
  EXPECT_EQ(test::status_of(test::get(here.watching, "/" + std::string(30'000, 'a'))),
            "HTTP/1.1 431 Request Header Fields Too Large");
  EXPECT_EQ(test::status_of(test::get(here.watching, "/metrics")), "HTTP/1.1 200 OK");
}

TEST(observer_http, half_a_request_is_dropped_and_a_connection_serves_several) {
  const observed hasty{400ms}, here;
  test::asking half{hasty.watching.http_port()};
  half.send("GET /metrics HTTP/1.1\r\nHost: 127");
  EXPECT_EQ(half.rest(), "");
  const std::string request = "GET /stalls.json HTTP/1.1\r\nHost: 127.0.0.1:" + here.port() +
                              "\r\nAuthorization: Bearer " + here.token() + "\r\n";
  test::asking several{here.watching.http_port()};
  several.send(request + "\r\n" + request + "\r\n" + request + "Connection: close\r\n\r\n");
  const std::string answers = several.rest();
  std::size_t count = 0;
  for (std::size_t at = answers.find("HTTP/1.1 200 OK"); at != std::string::npos;
       at = answers.find("HTTP/1.1 200 OK", at + 1))
    ++count;
  EXPECT_EQ(count, 3U);
}

TEST(observer_http, too_many_are_told_so) {
  const test::own_directory where;
  const w::observer watching{{.http = true, .directory = where.path().c_str()}};
  const std::string request = "HEAD /stalls.json HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(watching.http_port()) +
                              "\r\nAuthorization: Bearer " + std::string{watching.token()} + "\r\n\r\n";
  std::vector<test::asking> all;
  for (int i = 0; i != 16; ++i) {
    all.emplace_back(watching.http_port());
    all.back().send(request);
    EXPECT_EQ(all.back().line(), "HTTP/1.1 200 OK\r");
  }
  test::asking one_more{watching.http_port()};
  EXPECT_EQ(test::status_of(one_more.rest()), "HTTP/1.1 503 Service Unavailable");
  test::asking by_socket{watching.socket_path()};
  EXPECT_EQ(json::parse(by_socket.ask("help"))["answer"], "help");
}

// Anybody on the machine can connect, but keeps nobody out by that.
TEST(observer_http, who_shows_no_token_gives_way) {
  const test::own_directory where;
  const w::observer watching{{.http = true, .directory = where.path().c_str()}};
  std::vector<test::asking> silent;
  for (int i = 0; i != 40; ++i) silent.emplace_back(watching.http_port());
  EXPECT_EQ(test::status_of(test::get(watching, "/stalls.json")), "HTTP/1.1 200 OK");
  EXPECT_EQ(silent.front().rest(), "");
}

TEST(observer_http, the_page_has_a_policy_that_allows_its_own_script_and_nothing_else) {
  const observed here;
  const auto nonce_of = [](const std::string& answer) {
    const std::size_t at = answer.find("script-src 'nonce-") + 18;
    return answer.substr(at, answer.find('\'', at) - at);
  };
  const std::string one = test::get(here.watching, "/"), other = test::get(here.watching, "/");
  EXPECT_EQ(nonce_of(one).size(), 32U);
  EXPECT_NE(nonce_of(one), nonce_of(other));
  EXPECT_NE(one.find("Content-Security-Policy: default-src 'none';"), std::string::npos);
  EXPECT_NE(test::body_of(one).find("<script nonce=\"" + nonce_of(one) + "\">"), std::string::npos);
  EXPECT_NE(test::body_of(one).find("<style nonce=\"" + nonce_of(one) + "\">"), std::string::npos);
  EXPECT_EQ(one.find("unsafe"), std::string::npos);
  EXPECT_EQ(test::body_of(one).find("@NONCE@"), std::string::npos);
  for (const std::string_view outside : {"http://", "https://", "src=", "@import", "url("}) {
    std::string body = test::body_of(one);
    for (const std::string allowed : {"http://www.w3.org/2000/svg", "http://127.0.0.1"})
      for (std::size_t at; (at = body.find(allowed)) != std::string::npos;) body.erase(at, allowed.size());
    EXPECT_EQ(body.find(outside), std::string::npos) << outside;
  }
  for (const std::string_view field : {"X-Content-Type-Options: nosniff", "Cache-Control: no-store",
                                       "Referrer-Policy: no-referrer", "X-Frame-Options: DENY"})
    EXPECT_NE(test::get(here.watching, "/metrics").find(field), std::string::npos) << field;
}

TEST(observer_http, tokens_are_compared_as_a_whole) {
  using weft::detail::equal_in_constant_time;
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_TRUE(equal_in_constant_time("", ""));
  for (const std::string_view other : {"", "ab", "abcabc", "abd", "xbc", "abc "})
    EXPECT_FALSE(equal_in_constant_time("abc", other));
  EXPECT_FALSE(equal_in_constant_time("", "abc"));
  EXPECT_FALSE(equal_in_constant_time("abcabc", "abc"));
}

TEST(observer_http, all_of_it_is_json) {
  const observed here;
  const w::pool workers{{.threads = 2}};
  const json all = json::parse(test::body_of(test::get(here.watching, "/all.json")));
  for (const char* const part : {"status", "stalls", "deadlocks", "snapshot"}) EXPECT_TRUE(all.contains(part));
  EXPECT_EQ(all["status"]["pools"].size(), 1U);
}
