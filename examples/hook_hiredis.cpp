// Hiredis' blocking calls in fibers whose calls are hooked, on one thread: `example_hook_hiredis PATH`, where PATH is the Unix
// socket of a redis-server. One waits for a list, the others fill it.
#include <hiredis/hiredis.h>

#include <cstdio>
#include <memory>
#include <string>
#include <weft/hook.hpp>
#include <weft/weft.hpp>

namespace w = weft;

struct gone {
  void operator()(redisContext* one) const { redisFree(one); }
  void operator()(redisReply* one) const { freeReplyObject(one); }
};
using connection = std::unique_ptr<redisContext, gone>;
using reply = std::unique_ptr<redisReply, gone>;

connection connect(const std::string& path) {
  connection to{redisConnectUnix(path.c_str())};
  if (!to || to->err != 0) throw std::runtime_error{to ? to->errstr : "no memory"};
  return to;
}
reply command(const connection& to, const char* what, int number) {
  reply got{static_cast<redisReply*>(redisCommand(to.get(), what, number))};
  if (!got || got->type == REDIS_REPLY_ERROR) throw std::runtime_error{got ? got->str : to->errstr};
  return got;
}

constexpr int many = 50;

void take_all(const std::string& path, long long& sum) {
  const connection to = connect(path);
  for (int i = 0; i != many; ++i) sum += std::atoi(command(to, "BLPOP queue %d", 0)->element[1]->str);
}
void put(const std::string& path, int number) { command(connect(path), "RPUSH queue %d", number); }

int main(int argc, char** arguments) {
  if (argc != 2) return std::fputs("usage: example_hook_hiredis PATH\n", stderr), 2;
  const std::string path = arguments[1];
  w::runtime rt{{.threads = 1}};
  long long sum = 0;
  auto body = [&](w::scope& all) -> w::task<> {
    all.fork(w::hooked([&] { take_all(path, sum); }));  // blocks before there is anything
    for (int i = 1; i <= many; ++i) all.fork(w::hooked([&path, i] { put(path, i); }));
    co_return;
  };
  rt.run(w::with_scope({.executor = &rt.workers().worker(0)}, body));
  std::printf("the sum is %lld\n", sum);
}
