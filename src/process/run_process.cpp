// run_process and output_of: a process from its beginning to its end.
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>
#include <weft/error.hpp>
#include <weft/on_scope_exit.hpp>
#include <weft/process.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

#include "net/sockets.hpp"

namespace weft {
namespace {

// If end() fails, as for lack of memory or because other code has reaped the process, the destructor of `process` does the rest.
task<> end_if_there(const process& child, detail::time_span grace) {
  try {
    co_await child.end(grace);
  } catch (const std::exception&) {
  }
}

// Waits for the process; ends it if this task is stopped or fails. The awaiting task owns `child`, which outlives the cleanup.
task<exit_status> wait_or_end(const process& child, detail::time_span grace) {
  co_await on_scope_exit(end_if_there(child, grace));
  co_return co_await child.wait();
}

task<> feed(process_writer& to, std::string_view input) {
  if (!to.is_open()) co_return;
  try {
    co_await to.write(input);
  } catch (const weft::error& failure) {
    if (failure.code() != errc::closed) throw;  // `closed`: the program reads no more of its input, which is no failure
  }
  to.close();
}

task<> collect(const process_reader& from, std::string& into, std::size_t limit) {
  constexpr std::size_t step = std::size_t{16} * 1024;
  for (std::size_t size = 0;;) {
    into.resize(size + step);
    const std::size_t more = co_await from.read(std::as_writable_bytes(std::span{into}.subspan(size)));
    into.resize(size += more);
    if (more == 0) co_return;
    if (size > limit)
      co_await fail_with(weft::error{std::make_error_code(std::errc::file_too_large), "read a process's output"});
  }
}

// The arguments of run_process() and output_of(), copied: the task may start after the caller's have been destroyed.
struct owned_arguments {
  owned_arguments(const process_options& options, const strings& list)
      : arguments{list.copy()},
        variables{options.variables.copy()},
        descriptors{options.descriptors.copy()},
        directory{options.directory},
        given{options} {
    if (options.environment) environment = options.environment->copy();
  }
  owned_arguments(const output_options& options, const strings& list) : owned_arguments{options.process, list} {
    input = options.input;
    limit = options.limit;
    given.in = input.empty() ? stdio::null() : stdio::pipe();
    given.out = given.err = stdio::pipe();
  }
  process_options options() const {
    process_options all = given;
    if (environment) all.environment = strings{*environment};
    all.variables = variables;
    all.descriptors = descriptors;
    all.directory = directory;
    return all;
  }

  std::vector<std::string> arguments, variables;
  std::vector<int> descriptors;
  std::optional<std::vector<std::string>> environment;
  std::string directory, input;
  std::size_t limit = 0;
  process_options given;  // options() replaces the members that refer to the caller's memory
};

task<exit_status> feed_and_collect(process& child, const owned_arguments& what, process_output& got) {
  co_await on_scope_exit(end_if_there(child, what.given.grace));
  const auto all_at_once = [&](scope& those) -> task<> {  // if one of these fails, the scope stops the others
    auto out = those.fork(collect(child.output, got.out, what.limit));
    auto err = those.fork(collect(child.error, got.err, what.limit));
    co_await feed(child.input, what.input);
    co_await std::move(out);
    co_await std::move(err);
  };
  co_await with_scope({}, all_at_once);
  co_return co_await child.wait();
}

task<exit_status> run_to_end(owned_arguments what) {
  co_await check_stop();
  const process_options options = what.options();
  if (options.in.is_pipe() || options.out.is_pipe() || options.err.is_pipe())
    throw weft::error{system_error(EINVAL), "run a process", what.arguments.empty() ? "" : what.arguments.front()};
  const process child{options, what.arguments};
  co_return co_await wait_or_end(child, options.grace);
}

task<process_output> collect_output(owned_arguments what) {
  co_await check_stop();
  const process_options options = what.options();
  process child{options, what.arguments};
  process_output got;
  got.status = co_await feed_and_collect(child, what, got);
  co_return got;
}

}  // namespace

task<exit_status> run_process(const process_options& options, const strings& arguments) {
  return run_to_end(owned_arguments{options, arguments});
}

task<process_output> output_of(const output_options& options, const strings& arguments) {
  return collect_output(owned_arguments{options, arguments});
}

}  // namespace weft
