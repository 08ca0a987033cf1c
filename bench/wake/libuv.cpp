#include "workload.hpp"

#include <netinet/in.h>
#include <uv.h>

namespace {

std::atomic<std::atomic<bool>*> job{nullptr};
std::atomic<bool> over{false};

void on_post(uv_async_t* self) {
  if (auto* flag = job.exchange(nullptr, std::memory_order_acquire)) flag->store(true, std::memory_order_release);
  if (over.load(std::memory_order_acquire)) uv_stop(self->loop);
}

}  // namespace

void bench::run(bench::state& state) {
  uv_loop_t loop;
  uv_async_t has_job;
  uv_tcp_t at;
  sockaddr_in where{};
  uv_ip4_addr("127.0.0.1", 0, &where);
  uv_loop_init(&loop);
  uv_async_init(&loop, &has_job, on_post);
  uv_tcp_init(&loop, &at);
  uv_tcp_bind(&at, reinterpret_cast<const sockaddr*>(&where), 0);
  uv_listen(reinterpret_cast<uv_stream_t*>(&at), 16, [](uv_stream_t*, int) {});
  std::thread server{[&] { uv_run(&loop, UV_RUN_DEFAULT); }};
  wake_ups(state, [&](std::atomic<bool>& ran) {
    job.store(&ran, std::memory_order_release);
    uv_async_send(&has_job);
  });
  over.store(true, std::memory_order_release);
  uv_async_send(&has_job);
  server.join();
}
