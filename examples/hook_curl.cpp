// Many transfers at once on two threads, by libcurl's easy interface, in fibers whose calls are hooked:
// `example_hook_curl URL COUNT PORT`. The server of URL passes what it is asked on to PORT, where this program answers as soon as all
// COUNT requests wait.
#include <curl/curl.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <weft/hook.hpp>
#include <weft/weft.hpp>

namespace w = weft;

std::size_t keep(char* data, std::size_t, std::size_t size, void* into) {
  static_cast<std::string*>(into)->append(data, size);
  return size;
}

// Knows nothing of weft.
int fetch(const std::string& url) {
  std::string got;
  CURL* const easy = curl_easy_init();
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);  // its time-outs by signals are a thread's
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &got);
  const CURLcode failed = curl_easy_perform(easy);
  curl_easy_cleanup(easy);
  if (failed != CURLE_OK) throw std::runtime_error{curl_easy_strerror(failed)};  // which stops all others
  return got == "an answer\n" ? 1 : 0;
}

w::task<int> fetch_on(w::executor& worker, const std::string& url, int count) {
  int right = 0;
  auto body = [&](w::scope& transfers) -> w::task<> {
    for (int i = 0; i != count; ++i)
      transfers.fork(w::hooked([&url, &right] { right += fetch(url); }));  // all on one thread
    co_return;
  };
  co_await w::with_scope({.executor = &worker}, body);
  co_return right;
}

w::task<> answer_when_all_wait(const w::net::listener& at, int count) {
  std::vector<w::net::stream> waiting;
  while (waiting.size() != static_cast<std::size_t>(count)) {
    w::net::stream one = co_await at.accept();
    w::io::buffered_reader from{one};
    co_await from.read_until("\r\n\r\n");
    waiting.push_back(std::move(one));
  }
  for (const w::net::stream& one : waiting) {
    co_await one.write("HTTP/1.0 200 OK\r\n\r\nan answer\n");
    one.shutdown();
  }
}

int main(int argc, char** arguments) {
  if (argc != 4) return std::fputs("usage: example_hook_curl URL COUNT PORT\n", stderr), 2;
  const std::string url = arguments[1];
  const int count = std::atoi(arguments[2]);
  const auto port = static_cast<std::uint16_t>(std::atoi(arguments[3]));
  curl_global_init(CURL_GLOBAL_DEFAULT);
  {
    w::runtime rt{{.threads = 2}};
    w::executor &one = rt.workers().worker(0), &other = rt.workers().worker(1);
    auto all = [&]() -> w::task<int> {
      const w::net::listener at = co_await w::net::listen({.backlog = 4096}, {"127.0.0.1", port});
      const auto [first, second, answered] = co_await w::when_all(
          fetch_on(one, url, count / 2), fetch_on(other, url, count - count / 2), answer_when_all_wait(at, count));
      co_return first + second;
    };
    std::printf("%s\n", rt.run(all()) == count ? "all waited at once, and each has its answer" : "an answer is wrong");
  }
  curl_global_cleanup();
}
