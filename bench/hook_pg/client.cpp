// Starts a PostgreSQL server of its own, in a directory of its own, as an ordinary user; see queries.hpp.
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "../harness/net/client.hpp"

namespace {

using namespace std::chrono_literals;

class database_server {
 public:
  explicit database_server(std::size_t connections) {
    glob_t found{};
    if (::glob("/usr/lib/postgresql/*/bin/initdb", 0, nullptr, &found) == 0)
      programs_ = std::filesystem::path{found.gl_pathv[found.gl_pathc - 1]}.parent_path();
    ::globfree(&found);
    const passwd* const user = ::geteuid() == 0 ? ::getpwnam("postgres") : ::getpwuid(::geteuid());
    if (programs_.empty() || user == nullptr) throw bench::not_here{"there is no server of PostgreSQL's"};
    user_ = user->pw_uid;
    group_ = user->pw_gid;
    if (::mkdtemp(directory_.data()) == nullptr ||
        (::geteuid() == 0 && ::chown(directory_.c_str(), user_, group_) != 0))
      throw std::system_error{errno, std::generic_category(), directory_};
    const std::string data = directory_ + "/data";
    bool is_there = false;
    if (run({"initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "--no-locale"})) {
      server_ = start({"postgres", "-D", data, "-k", directory_, "-c", "listen_addresses=", "-c", "fsync=off", "-c",
                       "shared_buffers=32MB", "-c", "max_connections=" + std::to_string(connections + 10)});
      // Its socket is there before it takes connections.
      for (int i = 0; i != 600 && !is_there; ++i) {
        std::this_thread::sleep_for(50ms);
        is_there = run({"pg_isready", "-q", "-h", directory_});
      }
    }
    if (is_there) return;
    end();
    throw bench::not_here{"PostgreSQL's server can't be started here"};
  }
  database_server(const database_server&) = delete;
  ~database_server() { end(); }

  const std::string& directory() const noexcept { return directory_; }

 private:
  bool run(std::vector<std::string> words) const {
    int how = 0;
    return ::waitpid(start(std::move(words)), &how, 0) > 0 && how == 0;
  }
  void end() const {
    if (server_ > 0) {
      ::kill(server_, SIGINT);
      ::waitpid(server_, nullptr, 0);
    }
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  // What it says goes into the directory.
  pid_t start(std::vector<std::string> words) const {
    const std::string program = programs_ / words.front(), log = directory_ + "/" + words.front() + ".log";
    std::vector<char*> pointers;
    for (std::string& one : words) pointers.push_back(one.data());
    pointers.push_back(nullptr);
    const pid_t id = ::fork();
    if (id != 0) return id;
    ::prctl(PR_SET_PDEATHSIG, SIGINT);
    if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setgid(group_) != 0 || ::setuid(user_) != 0))
      ::_exit(126);
    ::prctl(PR_SET_PDEATHSIG, SIGINT);  // which the change of the user has taken away
    if (::chdir(directory_.c_str()) != 0 || std::freopen(log.c_str(), "w", stdout) == nullptr ||
        std::freopen(log.c_str(), "a", stderr) == nullptr)
      ::_exit(126);
    ::execv(program.c_str(), pointers.data());
    ::_exit(127);
  }

  std::string directory_ = "/tmp/weft-bench-XXXXXX";
  std::filesystem::path programs_;
  uid_t user_ = 0;
  gid_t group_ = 0;
  pid_t server_ = -1;
};

}  // namespace

void bench::run(state& state) {
  const std::size_t connections = state.size();
  const std::uint64_t at_once = 10'000, each = at_once / connections, all = each * connections;
  const database_server database{connections};
  const server_process asks{state, {"2", "64", std::to_string(connections), database.directory()}};
  const connection to{asks};
  state.measure(static_cast<double>(all), all, [&] {
    to.send(&each, sizeof each);
    std::uint64_t right = 0;
    to.receive(&right, sizeof right);
    return right;
  });
  state.report("own KiB", static_cast<double>(asks.own_bytes()) / 1024);
}
