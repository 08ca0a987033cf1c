// A job pipeline with back-pressure: one stage reads, three work on a pool, one writes. Channels between them are bounded, so
// that whoever is fast waits for who is slow. Ctrl-C ends the reading alone; what was read goes through to the end.
#include <csignal>
#include <cstdio>
#include <utility>
#include <weft/weft.hpp>

namespace w = weft;

struct pipeline {
  w::channel<int> jobs{4};      // how far the reader may be ahead
  w::channel<long> results{4};  // and the workers
  long read = 0, written = 0;

  w::task<> read_jobs() {
    for (;; ++read) co_await jobs.send(static_cast<int>(read));
  }
  w::task<> read_until(w::task<int> told) {
    co_await w::when_any(read_jobs(), std::move(told));
    jobs.close();  // workers still get what is in it
  }

  w::task<> work() {
    while (auto job = co_await jobs.receive()) co_await results.send(2L * *job);
  }
  w::task<> work_by_three() {
    co_await w::when_all(work(), work(), work());
    results.close();
  }

  w::task<> write_results() {
    while (auto result = co_await results.receive()) ++written;
  }
};

w::task<> press_ctrl_c(const pipeline& all) {  // stands for who does
  while (all.read < 1000) co_await w::yield();
  std::raise(SIGINT);
}

w::task<> run() {
  w::pool workers{{.threads = 2}};
  pipeline all;
  co_await w::when_all(all.read_until(w::interrupted()), w::start_on(workers, all.work_by_three()), all.write_results(),
                       press_ctrl_c(all));
  std::printf("interrupted; %s\n", all.written == all.read ? "each job that was read is done" : "jobs were lost");
}

int main() { return w::run_main({.threads = 1}, run()); }  // who reads and writes share a thread
