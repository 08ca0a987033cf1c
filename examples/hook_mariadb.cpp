// Many queries at once on two threads, by libmariadb's blocking calls, in fibers whose calls are hooked:
// `example_hook_mariadb PATH COUNT`, where PATH is the Unix socket of a mariadbd. Each query sleeps half a second in the server: one
// after the other they would take COUNT halves.
#include <mariadb/mysql.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <weft/hook.hpp>
#include <weft/weft.hpp>

namespace w = weft;

// Knows nothing of weft.
int ask(const std::string& path, int number) {
  MYSQL* const to = mysql_init(nullptr);
  int right = 0;
  const std::string query = "select " + std::to_string(number) + " + 1 + sleep(0.5)";
  if (mysql_real_connect(to, nullptr, "root", nullptr, nullptr, 0, path.c_str(), 0) != nullptr &&
      mysql_query(to, query.c_str()) == 0) {
    MYSQL_RES* const got = mysql_store_result(to);
    right = std::atoi(mysql_fetch_row(got)[0]) == number + 1 ? 1 : 0;
    mysql_free_result(got);
  } else {
    std::fprintf(stderr, "%s\n", mysql_error(to));
  }
  mysql_close(to);
  return right;
}

w::task<int> ask_on(w::executor& worker, const std::string& path, int count) {
  int right = 0;
  auto body = [&](w::scope& queries) -> w::task<> {
    for (int i = 0; i != count; ++i)
      queries.fork(w::hooked([&path, &right, i] { right += ask(path, i); }));  // all on one thread
    co_return;
  };
  co_await w::with_scope({.executor = &worker}, body);
  co_return right;
}

int main(int argc, char** arguments) {
  if (argc != 3) return std::fputs("usage: example_hook_mariadb PATH COUNT\n", stderr), 2;
  const std::string path = arguments[1];
  const int count = std::atoi(arguments[2]);
  mysql_library_init(0, nullptr, nullptr);
  {
    w::runtime rt{{.threads = 2}};
    const auto begun = std::chrono::steady_clock::now();
    const auto [first, second] = rt.run(w::when_all(ask_on(rt.workers().worker(0), path, count / 2),
                                                    ask_on(rt.workers().worker(1), path, count - count / 2)));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    std::printf("%s\n", first + second == count ? "all answers are right" : "an answer is wrong");
    std::printf("%s\n", took.count() < count / 4. ? "at once" : "one after the other");
    std::fprintf(stderr, "%d queries of half a second on two threads: %.2f s\n", count, took.count());
  }
  mysql_library_end();
}
