// libmariadb's blocking calls in fibers whose calls are hooked, on one thread: `example_hook_mariadb PATH`, where PATH is the
// Unix socket of a mariadbd. Each query sleeps in the server, and all of them do so at once.
#include <mariadb/mysql.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <weft/hook.hpp>
#include <weft/weft.hpp>

namespace w = weft;

int ask(const std::string& path, int number) {
  MYSQL* const to = mysql_init(nullptr);
  int right = 0;
  const std::string query = "select " + std::to_string(number) + " + 1 + sleep(0.3)";
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

int main(int argc, char** arguments) {
  if (argc != 2) return std::fputs("usage: example_hook_mariadb PATH\n", stderr), 2;
  const std::string path = arguments[1];
  constexpr int many = 40;
  mysql_library_init(0, nullptr, nullptr);
  w::runtime rt{{.threads = 1}};
  int right = 0;
  auto body = [&](w::scope& all) -> w::task<> {
    for (int i = 0; i != many; ++i) all.fork(w::hooked([&path, &right, i] { right += ask(path, i); }));
    co_return;
  };
  const auto begun = std::chrono::steady_clock::now();
  rt.run(w::with_scope({.executor = &rt.workers().worker(0)}, body));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::printf("%d answers are right, %s\n", right, took.count() < many * 0.3 / 2 ? "at once" : "one after the other");
  mysql_library_end();
}
