#include <weft/process.hpp>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <system_error>
#include <type_traits>
#include <weft/error.hpp>
#include <weft/timed.hpp>
#include <weft/timer.hpp>
#include <weft/unix.hpp>

#include "io/io_service.hpp"
#include "net/sockets.hpp"
#include "pool/processor_set.hpp"
#include "process/child_process.hpp"

namespace weft {
namespace {

static_assert(std::is_trivially_destructible_v<process_options> && std::is_trivially_destructible_v<output_options>,
              "in a co_await g++ 12 destroys a temporary aggregate twice unless it is trivially destructible");
using net::owned_descriptor;

[[noreturn]] void refuse(int number, const std::string& program) {
  throw weft::error{system_error(number), "start a process", program};
}

// Gives a descriptor to the io_service of the running thread, which watches it and later closes it.
detail::descriptor& hand_over(owned_descriptor&& file, const std::string& program) try {
  detail::descriptor& watched = detail::io_service_here().watch(file.number(), true);
  static_cast<void>(file.release());
  return watched;
} catch (const weft::error& failed) {
  refuse(failed.code().value(), program);
}

}  // namespace

std::string exit_status::to_string() const {
  if (signal_ == 0) return "exit code " + std::to_string(code_);
  std::string text = "signal " + std::to_string(signal_);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
  if (const char* const name = ::sigdescr_np(signal_); name != nullptr) text.append(" (").append(name).append(")");
#endif
  if (dumped_core_) text += ", core dumped";
  return text;
}

namespace detail {

bool awaiting_end::may_try() const noexcept { return at->may_try(which()) || of->has_ended(); }

tried awaiting_end::attempt() const noexcept {
  at->expect_change(which());
  const int refused = of->try_reap();
  if (refused == EAGAIN) return {.must_wait = true};
  at->has_more(which());  // others may wait for the same end, now or later
  return {.refused = system_error(refused)};
}

exit_status awaiting_end::give(const tried&) const noexcept { return of->status(); }

}  // namespace detail

// ---- starting -------------------------------------------------------------------------------------------------------------

namespace {

bool has_nul(std::string_view text) noexcept { return text.find('\0') != text.npos; }

// A null-terminated array of pointers to the texts, as exec() takes it. The texts must outlive it.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers(texts.size() + 1);
  auto to = pointers.begin();
  for (const std::string& text : texts) *to++ = const_cast<char*>(text.c_str());  // NOLINT: it is only read
  return pointers;
}

// The environment of a process, as exec() takes it. The variables of this program are not copied: the array points to them.
class variables_for {
 public:
  variables_for(const process_options& options, const std::string& program)
      : more_{options.variables.copy()}, inherits_{!options.environment} {
    if (options.environment) given_ = options.environment->copy();
    for (const auto* const list : {&given_, &more_})
      for (const std::string& one : *list)
        if (has_nul(one) || one.find('=') == one.npos) refuse(EINVAL, program);
    for (const std::string& one : more_)
      if (one.front() == '=') refuse(EINVAL, program);
  }
  variables_for(const variables_for&) = delete;

  // Valid while this object lives, and until the program changes its own environment.
  char* const* pointers() {
    if (inherits_ && more_.empty() && environ != nullptr) return environ;
    for (char** one = inherits_ ? environ : nullptr; one != nullptr && *one != nullptr; ++one) add(*one);
    for (const std::string& one : given_) add(const_cast<char*>(one.c_str()));  // NOLINT: it is only read
    for (auto one = more_.begin(); one != more_.end(); ++one)
      if (!is_set_by(one + 1, *one)) all_.push_back(one->data());
    all_.push_back(nullptr);
    return all_.data();
  }

 private:
  using place = std::vector<std::string>::const_iterator;
  void add(char* one) {
    if (!is_set_by(more_.begin(), one)) all_.push_back(one);
  }
  // Whether the variable at `one`, or a later one in `more_`, has the same name as `other`.
  bool is_set_by(place one, std::string_view other) const noexcept {
    const std::string_view name = other.substr(0, other.find('=') + 1);
    return !name.empty() && std::any_of(one, more_.end(), [name](std::string_view by) { return by.starts_with(name); });
  }

  std::vector<std::string> given_, more_;
  bool inherits_;
  std::vector<char*> all_;
};

// The file actions and attributes for posix_spawnp().
class spawn_settings {
 public:
  explicit spawn_settings(const std::string& program) : program_{program} {
    expect(::posix_spawn_file_actions_init(&actions_));
    if (const int refused = ::posix_spawnattr_init(&attributes_); refused != 0) {
      ::posix_spawn_file_actions_destroy(&actions_);
      refuse(refused, program_);
    }
  }
  spawn_settings(const spawn_settings&) = delete;
  ~spawn_settings() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }

  void open_null(int number) { expect(::posix_spawn_file_actions_addopen(&actions_, number, "/dev/null", O_RDWR, 0)); }
  void duplicate_as(int number, int from) { expect(::posix_spawn_file_actions_adddup2(&actions_, from, number)); }
  void close_from(int number) {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    expect(::posix_spawn_file_actions_addclosefrom_np(&actions_, number));
#else
    static_cast<void>(number);  // older glibc can't close them: those without close-on-exec are passed on
#endif
  }
  void change_directory(const std::string& directory) {
    expect(::posix_spawn_file_actions_addchdir_np(&actions_, directory.c_str()));
  }
  // Unblocks all signals, sets their default actions, and begins a process group if asked to.
  void reset_signals_and_group(bool own_group) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    expect(::posix_spawnattr_setsigmask(&attributes_, &none));
    expect(::posix_spawnattr_setsigdefault(&attributes_, &all));
    expect(::posix_spawnattr_setpgroup(&attributes_, 0));
    const int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (own_group ? POSIX_SPAWN_SETPGROUP : 0);
    expect(::posix_spawnattr_setflags(&attributes_, static_cast<short>(flags)));
  }
  pid_t start(const std::vector<std::string>& arguments, variables_for& variables) {
    const std::vector<char*> pointers = pointers_to(arguments);
    char* const* const environment = variables.pointers();
    // A program that was just written can't be started (ETXTBSY) while another thread starts one: until that has loaded its
    // program, it has a duplicate of each descriptor, also of those that were closed meanwhile.
    for (long pause = 100'000;; pause *= 2) {
      const detail::as_unpinned on_all;
      pid_t number = -1;
      const int refused =
          ::posix_spawnp(&number, program_.c_str(), &actions_, &attributes_, pointers.data(), environment);
      if (refused == 0) return number;
      if (refused != ETXTBSY || pause > 6'400'000) expect(refused);
      const timespec time{.tv_sec = 0, .tv_nsec = pause};
      ::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, nullptr);  // by no hook: this thread starts the process
    }
  }

 private:
  void expect(int refused) const {
    if (refused != 0) refuse(refused, program_);
  }
  const std::string& program_;
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// A duplicate above all numbers that the process gets, so that no dup2() in the child overwrites one that is copied later.
owned_descriptor duplicate(int number, int above, const std::string& program) {
  owned_descriptor made{::fcntl(number, F_DUPFD_CLOEXEC, above)};
  if (made.number() < 0) refuse(errno, program);
  return made;
}

}  // namespace

process::process(const process_options& options, const strings& list) {
  const std::vector<std::string> arguments = list.copy();
  const std::vector<int> descriptors = options.descriptors.copy();
  const std::string program = arguments.empty() ? std::string{} : arguments.front();
  if (program.empty() || has_nul(options.directory) || std::any_of(arguments.begin(), arguments.end(), has_nul))
    refuse(EINVAL, program);
  variables_for variables{options, program};
  const int end_of_numbers = 3 + static_cast<int>(descriptors.size());

  spawn_settings how{program};
  std::vector<owned_descriptor> of_child;
  const auto gets = [&](int number, owned_descriptor file) {
    how.duplicate_as(number, file.number());
    of_child.push_back(std::move(file));
  };
  const std::array<stdio, 3> streams{options.in, options.out, options.err};
  const std::array<process_pipe*, 3> ends{&input, &output, &error};
  for (int i = 0; i != 3; ++i) {
    switch (const auto at = static_cast<std::size_t>(i); streams[at].which_) {
      case stdio::kind::inherit: break;
      case stdio::kind::null: how.open_null(i); break;
      case stdio::kind::descriptor: gets(i, duplicate(streams[at].number_, end_of_numbers, program)); break;
      case stdio::kind::to_output:
        if (i != 2) refuse(EINVAL, program);
        how.duplicate_as(2, 1);
        break;
      case stdio::kind::pipe: {
        int both[2];
        if (::pipe2(both, O_CLOEXEC) != 0) refuse(errno, program);
        owned_descriptor from{both[0]}, to{both[1]};
        owned_descriptor& mine = i == 0 ? to : from;
        gets(i, duplicate((i == 0 ? from : to).number(), end_of_numbers, program));
        if (::fcntl(mine.number(), F_SETFL, O_NONBLOCK) != 0) refuse(errno, program);
        ends[at]->at_ = &hand_over(std::move(mine), program);
        break;
      }
    }
  }
  for (std::size_t i = 0; i != descriptors.size(); ++i)
    gets(3 + static_cast<int>(i), duplicate(descriptors[i], end_of_numbers, program));
  how.close_from(end_of_numbers);
  if (!options.directory.empty()) how.change_directory(std::string{options.directory});
  how.reset_signals_and_group(options.own_group);

  // If anything throws from here on, `child_` kills the process.
  detail::reap_left_children();
  child_.reset(new detail::child_process{options.own_group});
  child_->has_begun(how.start(arguments, variables));
  owned_descriptor end{static_cast<int>(::syscall(SYS_pidfd_open, child_->number(), 0))};
  if (end.number() < 0) refuse(errno, program);
  child_->is_watched_by(hand_over(std::move(end), program));
}

int process::id() const noexcept { return child_ != nullptr ? child_->number() : -1; }

detail::operation<detail::awaiting_end> process::wait() const noexcept {
  return detail::awaiting_end{child_.get(), child_ != nullptr ? child_->at() : nullptr};
}

void process::signal(int number) const {
  if (child_ == nullptr) throw weft::error{detail::closed_here(), "send a signal to a process"};
  if (const int refused = child_->signal(number); refused != 0)
    throw weft::error{system_error(refused), "send a signal to a process", std::to_string(number)};
}

namespace {

detail::operation<detail::awaiting_end> until_ended(detail::child_process& child) {
  return {detail::awaiting_end{&child, child.at()}};
}

// Waits for the process, and then for those that it has left in its group, of which nothing tells.
task<exit_status> until_all_have_ended(detail::child_process& child) {
  const exit_status how = co_await until_ended(child);
  constexpr auto longest = std::chrono::milliseconds{64};
  for (auto pause = std::chrono::milliseconds{1}; child.has_left_group(); pause = std::min(2 * pause, longest)) {
    // What has ended there may never be reaped, as in a container whose first process reaps nothing. To find that out takes some 3
    // us for each process of the system.
    if (pause == longest && !detail::any_runs_in_group(child.number())) break;
    co_await sleep_for(pause);
  }
  co_return how;
}

}  // namespace

task<exit_status> process::end_within(detail::child_process* child, detail::time_span grace) {
  if (child == nullptr) co_await fail_with(detail::failure_of(detail::closed_here(), "end a process"));
  const auto send = [child](int number) {
    if (const int refused = child->signal(number); refused != 0)
      throw weft::error{system_error(refused), "end a process"};
  };
  child->end_group_too();
  send(SIGTERM);
  send(SIGCONT);  // a suspended process must run to handle SIGTERM
  try {
    co_return co_await timeout(grace, until_all_have_ended(*child));
  } catch (const weft::error& failure) {
    if (failure.code() != errc::timed_out) throw;
  }
  send(SIGKILL);
  child->kill_left_group();
  co_return co_await until_ended(*child);
}

int process::release() noexcept {
  if (child_ == nullptr) return -1;
  const pid_t number = child_->release();
  child_.reset();
  return number;
}

}  // namespace weft
