// A loop for each thread. The first one accepts, and deals the connections out.
#include <fcntl.h>
#include <unistd.h>
#include <uv.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "../harness/net/server.hpp"

namespace {

std::size_t buffer_bytes = bench::large_buffer;

void set_up(uv_loop_t* on, uv_tcp_t& handle) { uv_tcp_init(on, &handle); }
void set_up(uv_loop_t* on, uv_pipe_t& handle) { uv_pipe_init(on, &handle, 0); }
void take_over(uv_tcp_t& handle, int socket) { uv_tcp_open(&handle, socket); }
void take_over(uv_pipe_t& handle, int socket) { uv_pipe_open(&handle, socket); }

/// Of `uv_tcp_t` or, for Unix sockets, `uv_pipe_t`.
template <class Handle>
class server {
 public:
  static void run(std::size_t threads) {
    for (std::size_t i = 0; i != threads; ++i) loops.push_back(std::make_unique<loop>());
    Handle at;
    set_up(loops[0]->get(), at);
    take_over(at, bench::listening_socket);
    uv_listen(reinterpret_cast<uv_stream_t*>(&at), 4096, on_connection);
    for (std::size_t i = 1; i != threads; ++i) std::thread{[i] { loops[i]->run(); }}.detach();
    loops[0]->run();
  }

 private:
  /// A connection, and the memory that it reads into behind it.
  struct session {
    Handle peer;
    uv_write_t rest;  // of an answer that the system did not take whole
  };

  static session* make_session() { return static_cast<session*>(std::malloc(sizeof(session) + buffer_bytes)); }

  static void end(uv_stream_t* peer) {
    uv_close(reinterpret_cast<uv_handle_t*>(peer), [](uv_handle_t* handle) { std::free(handle->data); });
  }

  static void give_buffer(uv_handle_t* handle, std::size_t, uv_buf_t* out) {
    auto* self = static_cast<session*>(handle->data);
    *out = uv_buf_init(reinterpret_cast<char*>(self + 1), static_cast<unsigned>(buffer_bytes));
  }

  static void on_read(uv_stream_t* peer, ssize_t size, const uv_buf_t* buffer) {
    if (size < 0) return end(peer);
    uv_buf_t answer = uv_buf_init(buffer->base, static_cast<unsigned>(size));
    const int sent = uv_try_write(peer, &answer, 1);
    if (sent == size) return;
    if (sent < 0 && sent != UV_EAGAIN) return end(peer);
    answer.base += sent < 0 ? 0 : sent;
    answer.len -= static_cast<std::size_t>(sent < 0 ? 0 : sent);
    uv_read_stop(peer);
    uv_write(&static_cast<session*>(peer->data)->rest, peer, &answer, 1, [](uv_write_t* request, int failed) {
      if (failed != 0) return end(request->handle);
      uv_read_start(request->handle, give_buffer, on_read);
    });
  }

  class loop {
   public:
    loop() {
      uv_loop_init(&loop_);
      uv_async_init(&loop_, &has_more_, [](uv_async_t* self) { static_cast<loop*>(self->data)->take(); });
      has_more_.data = this;
    }

    /// From the first loop's thread.
    void hand(int socket) {
      {
        const std::lock_guard held{lock_};
        handed_.push_back(socket);
      }
      uv_async_send(&has_more_);
    }
    void begin(session* self) {
      self->peer.data = self;
      uv_read_start(reinterpret_cast<uv_stream_t*>(&self->peer), give_buffer, on_read);
    }
    void run() { uv_run(&loop_, UV_RUN_DEFAULT); }
    uv_loop_t* get() { return &loop_; }

   private:
    void take() {
      std::vector<int> all;
      {
        const std::lock_guard held{lock_};
        all.swap(handed_);
      }
      for (const int socket : all) {
        session* self = make_session();
        set_up(&loop_, self->peer);
        take_over(self->peer, socket);
        begin(self);
      }
    }

    uv_loop_t loop_;
    uv_async_t has_more_;
    std::mutex lock_;
    std::vector<int> handed_;
  };

  static void on_connection(uv_stream_t* at, int failed) {
    static std::size_t next = 0;
    if (failed != 0) return;
    session* self = make_session();
    set_up(loops[0]->get(), self->peer);
    self->peer.data = self;
    auto* peer = reinterpret_cast<uv_stream_t*>(&self->peer);
    if (uv_accept(at, peer) != 0) return end(peer);
    loop& whose = *loops[next++ % loops.size()];
    if (&whose == loops[0].get()) return whose.begin(self);
    uv_os_fd_t socket;  // libuv moves handles between processes, but not between loops: so a copy of the socket goes
    uv_fileno(reinterpret_cast<uv_handle_t*>(peer), &socket);
    whose.hand(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
    end(peer);
  }

  static inline std::vector<std::unique_ptr<loop>> loops;
};

}  // namespace

int main(int count, char** words) {
  const auto options = bench::read_server_options(count, words);
  buffer_bytes = options.buffer;
  if (options.is_unix)
    server<uv_pipe_t>::run(options.threads);
  else
    server<uv_tcp_t>::run(options.threads);
}
