// fio, which is no library: this has it read or write a file as the other programs do, and takes its own figures. So what it takes
// to start is left out, and it does not look at what it has read.
//
// One at a time it is its engine psync (pread, pwrite), else io_uring. The processor time that it tells is that of its one thread:
// so writes by a ring, which are made by threads of the kernel's, are left out.
#pragma once

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client.hpp"

namespace bench {

/// What the program prints. It has to end well.
inline std::string output_of(std::vector<std::string> words) {
  std::array<int, 2> both{};
  if (::pipe2(both.data(), O_CLOEXEC) != 0) throw wrong_result{"no pipe can be made"};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, both[1], STDOUT_FILENO);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t number = -1;
  const int refused = ::posix_spawn(&number, pointers[0], &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(both[1]);
  std::string text;
  std::array<char, 4096> part;
  for (ssize_t size; refused == 0 && (size = ::read(both[0], part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(size));
  ::close(both[0]);
  int how = 0;
  if (refused != 0 || ::waitpid(number, &how, 0) != number) throw wrong_result{"fio can't be started"};
  if (!WIFEXITED(how) || WEXITSTATUS(how) != 0) throw wrong_result{"fio has failed: " + text};
  return text;
}

/// `rw` and `more` are fio's options: "randread", {"--direct=1"}.
inline void run_fio(state& state, std::size_t bytes, const std::string& rw, const std::vector<std::string>& more = {}) {
  const bool reads = rw.ends_with("read");
  if (!reads && state.size() != 1)
    throw not_here{"fio does not count the threads of the kernel's that write for a ring"};
  const std::uint64_t size = std::uint64_t{state.full() ? 256U : 32U} << 20;
  const numbered_file all{size};
  const auto milliseconds = [](state::clock::duration time) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) + "ms";
  };
  const std::string at_once = std::to_string(state.size());
  std::vector<std::string> words{BENCH_FIO,
                                 "--output-format=json",
                                 "--name=weft",
                                 "--filename=" + all.path(),
                                 "--allow_file_create=0",
                                 "--size=" + std::to_string(size),
                                 "--rw=" + rw,
                                 "--bs=" + std::to_string(bytes),
                                 state.size() == 1 ? "--ioengine=psync" : "--ioengine=io_uring",
                                 "--iodepth=" + at_once,
                                 "--iodepth_batch_submit=" + at_once,
                                 "--iodepth_batch_complete_max=" + at_once,
                                 "--invalidate=0",  // what is in the page cache stays there
                                 "--norandommap",
                                 "--gtod_reduce=1",
                                 "--time_based",
                                 "--ramp_time=" + milliseconds(state.warm_up()),
                                 "--runtime=" + milliseconds(state.budget())};
  words.insert(words.end(), more.begin(), more.end());
  const std::string text = output_of(std::move(words));
  const auto all_of_it = nlohmann::json::parse(text.substr(text.find('{')));
  const auto& job = all_of_it.at("jobs").at(0);
  const double moved = job.at(reads ? "read" : "write").at("total_ios").get<double>();
  state.verify(job.at("error").get<int>() == 0 && moved > 0, "fio has moved nothing");
  const double share = (job.at("usr_cpu").get<double>() + job.at("sys_cpu").get<double>()) / 100;
  state.measured(share * job.at("job_runtime").get<double>() * 1e6 / moved);
  state.report("operations", moved);
}

}  // namespace bench
