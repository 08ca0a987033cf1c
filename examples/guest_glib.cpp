// weft inside GLib's main loop: a server whose tasks run on the loop's thread, between its timers and all else that it has, as
// in a program with windows. Nothing here needs a lock. `example_guest_glib 7000`, then `nc 127.0.0.1 7000`: lines come back,
// and `ticks 3` is answered when the loop's own timer has ticked three times. Ends at SIGTERM or Ctrl-C, which GLib handles.
#include <glib-unix.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <weft/weft.hpp>

namespace w = weft;

struct program {
  GMainLoop* loop = g_main_loop_new(nullptr, FALSE);
  w::runtime weft{{.guest = true}};
  w::stop_source stop;
  w::watch<int> ticks{0};
  int ticked = 0;
  int status = 0;
};

w::task<> talk(w::net::stream peer, w::watch<int>& ticks) {
  w::io::buffered_reader in{peer};
  w::io::buffered_writer out{peer};
  auto lines = in.lines();
  while (const std::string* line = co_await lines.next()) {
    const std::string_view text = *line;
    int count = 0;
    if (text.starts_with("ticks ") &&
        std::from_chars(text.data() + 6, text.data() + text.size(), count).ec == std::errc{}) {
      auto timer = ticks.subscribe();
      co_await timer.receive();  // as it is now
      for (int i = 0; i < count; ++i) co_await timer.receive();
      co_await out.print("the loop has ticked ", count, " times\n");
    } else {
      co_await out.print("you said: ", text, "\n");
    }
    co_await out.flush();
  }
}

w::task<> serve(std::uint16_t port, w::watch<int>& ticks) {
  w::net::listener at = co_await w::net::listen(w::net::endpoint{"127.0.0.1", port});
  std::printf("listening on %s\n", at.local().to_string().c_str());
  std::fflush(stdout);
  const auto handler = [&ticks](w::net::stream peer) { return talk(std::move(peer), ticks); };
  co_await w::net::serve({.grace = std::chrono::seconds{1}}, std::move(at), handler);
}

// All of the glue: weft's descriptor is readable when there is something to run.
gboolean run_weft(int, GIOCondition, void* of) {
  static_cast<program*>(of)->weft.run_ready(
      64);  // then it is the loop's turn; what is left keeps the descriptor readable
  return G_SOURCE_CONTINUE;
}

gboolean tick(void* of) {
  auto& all = *static_cast<program*>(of);
  all.ticks.set(++all.ticked);
  return G_SOURCE_CONTINUE;
}

gboolean end(void* of) {
  static_cast<program*>(of)->stop.request_stop();
  return G_SOURCE_CONTINUE;
}

int main(int count, char** arguments) {
  std::uint16_t port = 0;  // 0: the system chooses one
  if (count > 1) {
    const std::string_view text = arguments[1];
    std::from_chars(text.data(), text.data() + text.size(), port);
  }
  program all;
  g_unix_fd_add(all.weft.descriptor(), G_IO_IN, run_weft, &all);
  g_timeout_add(20, tick, &all);
  g_unix_signal_add(SIGTERM, end, &all);
  g_unix_signal_add(SIGINT, end, &all);
  const auto ended = [&all](const w::result<void>& how) {
    if (how.exception()) std::fprintf(stderr, "%s\n", how.error().message().c_str());
    all.status = how.is_stopped() ? 0 : 1;
    g_main_loop_quit(all.loop);
  };
  w::start(all.weft, serve(port, all.ticks), ended, all.stop.token());
  g_main_loop_run(all.loop);
  g_main_loop_unref(all.loop);
  return all.status;
}
