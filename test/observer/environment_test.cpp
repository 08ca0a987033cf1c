// WEFT_OBSERVE: an observer without a line of code, and what is said where it can't be had.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "observer/asking.hpp"
#include "observer/environment.hpp"
#include "support/weft_test.hpp"

using nlohmann::json;
using weft::detail::parse_observe;
using namespace std::chrono_literals;

namespace {

// The program with these variables; its errors go to a file.
class started {
 public:
  started(const test::own_directory& where, std::initializer_list<std::pair<const char*, std::string>> variables,
          bool uses_weft = true)
      : errors_{where.below("errors")} {
    std::array<int, 2> in{}, out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) std::abort();
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      ::close(2);
      ::open(errors_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      ::unsetenv("WEFT_OBSERVE");
      ::unsetenv("XDG_RUNTIME_DIR");
      for (const auto& [name, value] : variables) ::setenv(name, value.c_str(), 1);
      ::execl(OBSERVED_PROGRAM, OBSERVED_PROGRAM, uses_weft ? nullptr : "idle", static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    char some[16];
    while (::read(out[0], some, sizeof some) > 0 && some[0] != 'r') continue;
    ::close(out[0]);
  }
  started(const started&) = delete;
  ~started() { end(); }

  pid_t child() const { return child_; }
  std::string errors() const {
    std::ifstream from{errors_};
    return {std::istreambuf_iterator<char>{from}, {}};
  }
  bool says(std::string_view what) const {
    for (int i = 0; i != 6000; ++i) {
      if (errors().find(what) != std::string::npos) return true;
      std::this_thread::sleep_for(10ms);
    }
    ADD_FAILURE() << "it does not say " << what << " but " << errors();
    return false;
  }
  int end() {
    if (child_ == 0) return 0;
    ::close(input_);
    int status = 0;
    ::waitpid(std::exchange(child_, 0), &status, 0);
    return status;
  }

 private:
  std::string errors_;
  pid_t child_ = 0;
  int input_ = -1;
};

std::string socket_of(const std::string& directory, const started& one) {
  return directory + "/" + std::to_string(one.child()) + ".sock";
}
bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace

TEST(observer_environment, says_what_it_does_not_understand) {
  const auto error = [](std::string_view text) { return parse_observe(text).error; };
  EXPECT_EQ(error(""), "");
  EXPECT_EQ(
      error("socket,,http=0,dump=USR1,dump_to=/x,dir=/y,token_file=/z,deadlocks=on,stall=50ms,samples=1000,trace=/t"),
      "");
  EXPECT_EQ(parse_observe("samples=250").options.samples_a_second, 250U);
  EXPECT_EQ(parse_observe("stall=2s").options.stall_after, 2s);
  for (const std::string_view wrong :
       {"sockets",  "socket=yes",   "http=",         "http=65536",   "http=-1",         "http=80x",
        "http= 80", "dump",         "dump=SIGKILL",  "dump=SIGSEGV", "dump=12",         "dump_to=x",
        "dir=",     "dir=relative", "token_file",    "deadlocks",    "deadlocks=maybe", "stall",
        "stall=50", "stall=0ms",    "stall=-1ms",    "stall=3601s",  "stall=5m",        "stall=4294967297ms",
        "samples",  "samples=0",    "samples=1001",  "samples=-1",   "samples=9x",      "trace",
        "trace=x",  " socket",      "socket,http=9 "})
    EXPECT_NE(error(wrong), "") << wrong;
  EXPECT_EQ(error("dump_to=/x"), "dump_to needs dump, with a signal");
  EXPECT_EQ(error("socket,token_file=/x"), "token_file needs http");
  EXPECT_EQ(error("dump=USR1,dir=/x"), "dir needs socket or http");
  const auto all = parse_observe("http=9900,dump=SIGUSR2,dump_to=/d");
  EXPECT_FALSE(all.options.socket);  // what is not asked for is not there
  EXPECT_TRUE(all.options.http);
  EXPECT_EQ(all.options.http_port, 9900);
  EXPECT_EQ(all.options.dump_signal, SIGUSR2);
  EXPECT_STREQ(all.complete().dump_file, "/d");
  EXPECT_EQ(all.complete().directory, nullptr);
}

TEST(observer_environment, gives_a_program_an_observer_that_goes_with_it) {
  const test::own_directory where;
  started one{where, {{"WEFT_OBSERVE", "socket"}, {"XDG_RUNTIME_DIR", where.path()}}};
  const std::string path = socket_of(where.below("weft"), one);
  {
    test::asking asks{path};
    EXPECT_EQ(json::parse(asks.ask("status"))["status"]["process"], one.child());
  }
  EXPECT_EQ(one.end(), 0);
  EXPECT_FALSE(exists(path));
  EXPECT_EQ(one.errors(), "");
}

TEST(observer_environment, a_signal_has_a_dump_written_to_stderr_as_often_as_it_comes) {
  const test::own_directory where;
  started one{where, {{"WEFT_OBSERVE", "dump=SIGUSR2"}}};
  ::kill(one.child(), SIGUSR2);
  EXPECT_TRUE(one.says("weft: dump of process " + std::to_string(one.child())));
  EXPECT_EQ(one.end(), 0);
}

TEST(observer_environment, says_why_a_process_is_not_observed_and_lets_it_run) {
  const test::own_directory where;
  const auto says = [&](const std::string& asked, std::string_view what) {
    started one{where, {{"WEFT_OBSERVE", asked}}};
    EXPECT_TRUE(one.says(what));
    EXPECT_EQ(one.end(), 0);
  };
  says("sockets", "weft: WEFT_OBSERVE: sockets is not known; the process is not observed");
  says("socket", "XDG_RUNTIME_DIR is not set");
}

TEST(observer_environment, does_nothing_in_a_program_that_does_not_use_weft) {
  const test::own_directory where;
  started one{where, {{"WEFT_OBSERVE", "socket,dir=" + where.below("weft")}}, false};
  EXPECT_FALSE(exists(where.below("weft")));
  EXPECT_EQ(one.end(), 0);
}
