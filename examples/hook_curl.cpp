// Many transfers at once on two threads, by libcurl's easy interface, in fibers whose calls are hooked: `example_hook_curl URL COUNT`.
// The server takes at least a second for each transfer: one after the other they would take COUNT seconds.
#include <curl/curl.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
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
  if (failed != CURLE_OK) std::fprintf(stderr, "%s\n", curl_easy_strerror(failed));
  curl_easy_cleanup(easy);
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

int main(int argc, char** arguments) {
  if (argc != 3) return std::fputs("usage: example_hook_curl URL COUNT\n", stderr), 2;
  const std::string url = arguments[1];
  const int count = std::atoi(arguments[2]);
  curl_global_init(CURL_GLOBAL_DEFAULT);
  {
    w::runtime rt{{.threads = 2}};
    const auto begun = std::chrono::steady_clock::now();
    const auto [first, second] = rt.run(w::when_all(fetch_on(rt.workers().worker(0), url, count / 2),
                                                    fetch_on(rt.workers().worker(1), url, count - count / 2)));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    std::printf("%s\n", first + second == count ? "all answers are right" : "an answer is wrong");
    std::printf("%s\n", took.count() < count / 2. ? "at once" : "one after the other");
    std::fprintf(stderr, "%d transfers of a second on two threads: %.2f s\n", count, took.count());
  }
  curl_global_cleanup();
}
