// Stops a task that waits. Its variables are destroyed from the inside outward, no `catch` sees it, and a cleanup that
// itself has to wait runs before whoever started the task hears of its end.
#include <cstdio>
#include <memory>
#include <utility>
#include <weft/weft.hpp>

namespace w = weft;

struct connection {
  explicit connection(const char* name) : name{name} { std::printf("%s opens\n", name); }
  ~connection() { std::printf("%s closes\n", name); }
  connection(const connection&) = delete;

  w::task<> say_goodbye(w::future<> acknowledged) {
    std::printf("%s says goodbye, and waits\n", name);
    co_await std::move(acknowledged);  // it can wait although the task was stopped: cleanup is shielded
    std::printf("%s is let go\n", name);
  }

  const char* name;
};

w::task<> read_for_ever(w::future<> data) {
  connection side{"side channel"};
  co_await std::move(data);  // stopped here
  std::printf("never reached\n");
}

w::task<> serve(w::future<> data, w::future<> acknowledged) {
  auto main_line = std::make_shared<connection>("main line");
  auto leave = [](std::shared_ptr<connection> line, w::future<> acknowledged) -> w::task<> {
    co_await line->say_goodbye(std::move(acknowledged));
  };
  co_await w::on_scope_exit(leave, main_line, std::move(acknowledged));
  try {
    co_await read_for_ever(std::move(data));
  } catch (...) {
    std::printf("never reached either: a stop is no exception\n");
  }
}

int main() {
  w::promise<> data, acknowledgement;
  w::stop_source source;

  w::start(
      serve(data.get_future(), acknowledgement.get_future()),
      [&](w::result<void> how) {
        std::printf("%s: %s\n", how.is_stopped() ? "stopped" : "done", source.cause()->reason);
      },
      source.token());

  std::printf("-- stop\n");
  source.request_stop({.reason = "the user is bored"});
  std::printf("-- acknowledge\n");
  acknowledgement.set_value();
}
