// It has no tasks: a timer with a function stands for one.
#include "workload.hpp"

#include <uv.h>
#include <memory>

namespace {

std::size_t all(std::size_t count) {
  uv_loop_t loop;
  uv_loop_init(&loop);
  std::size_t ended = 0;
  loop.data = &ended;
  constexpr std::chrono::milliseconds limit = bench::asleep;
  const auto timers = std::make_unique<uv_timer_t[]>(count);
  for (std::size_t i = 0; i != count; ++i) {
    uv_timer_init(&loop, &timers[i]);
    uv_timer_start(&timers[i], [](uv_timer_t*) {}, limit.count(), 0);
  }
  for (std::size_t i = 0; i != count; ++i)
    uv_close(reinterpret_cast<uv_handle_t*>(&timers[i]),
             [](uv_handle_t* one) { ++*static_cast<std::size_t*>(one->loop->data); });
  uv_run(&loop, UV_RUN_DEFAULT);
  uv_loop_close(&loop);
  return ended;
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(state.size(), state.size(), [&] { return all(state.size()); });
}
