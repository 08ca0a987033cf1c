// libcurl's easy interface in fibers whose calls are hooked: thirty transfers at once on one thread, from a server of weft's own,
// which answers none before all have asked.
#include <curl/curl.h>

#include <array>
#include <cstdio>
#include <span>
#include <string>
#include <weft/hook.hpp>
#include <weft/weft.hpp>

namespace w = weft;
constexpr int many = 30;

w::task<> answer(w::net::stream peer, w::latch& all_have_asked) {
  std::array<std::byte, 4096> request;
  if (co_await peer.read(request) == 0) co_return;
  all_have_asked.count_down();
  co_await all_have_asked.wait();
  co_await peer.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nanswer");
}

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
  if (failed != CURLE_OK) std::fprintf(stderr, "%s\n", curl_easy_strerror(failed));
  curl_easy_cleanup(easy);
  return got == "answer" ? 1 : 0;
}

w::task<int> fetch_all(w::executor& worker) {
  const w::net::listener at = co_await w::net::listen({"127.0.0.1", 0});
  const std::string url = "http://localhost:" + std::to_string(at.local().port()) + "/";
  w::latch all_have_asked{many};
  int right = 0;
  auto body = [&](w::scope& all) -> w::task<> {
    for (int i = 0; i != many; ++i) all.fork(w::hooked([&] { right += fetch(url); }));
    for (int i = 0; i != many; ++i) {
      w::net::stream peer = co_await at.accept();
      all.fork(answer(std::move(peer), all_have_asked));
    }
  };
  co_await w::with_scope({.executor = &worker}, body);
  co_return right;
}

int main() {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  w::runtime rt{{.threads = 1}};
  std::printf("%d transfers at once\n", rt.run(fetch_all(rt.workers().worker(0))));
  curl_global_cleanup();
}
