// resolve: host names are looked up, each by one question for each family, with a name server on this machine. One item is a
// lookup, and its time the processor time of the process that looks up. --size is how many are under way at once.
//
// All libraries look up as the system is configured. So the client and the program that is measured have a network and files
// of their own, in namespaces: there /etc/resolv.conf names dnsmasq, which knows an address of each family for all names of
// bench.test; the one of IPv6 can't be reached, so it comes last. That takes root.
//
// The programs are given as servers are, see harness/net/server.hpp: THREADS BYTES AT-ONCE. Each is told over one connection
// how many names to look up, as eight bytes, and says how many were right.
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "../harness/net/client.hpp"
#include "../harness/net/server.hpp"

namespace {

using namespace std::chrono_literals;

void checked(int result, const char* what) {
  if (result < 0) throw std::system_error{errno, std::generic_category(), what};
}

/// From now on, for this process and those that it starts.
void enter_own_network() {
  if (::unshare(CLONE_NEWNET | CLONE_NEWNS) != 0)
    throw bench::not_here{"a network of its own, with a name server, takes root"};
  checked(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "mount /");
  const int any = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP | IFF_RUNNING;
  checked(::ioctl(any, SIOCSIFFLAGS, &loopback), "lo");
  ::close(any);
}

/// In this namespace that file has this text, if it is there at all.
void replace(const char* path, std::string_view text) {
  if (::access(path, F_OK) != 0) return;
  char name[] = "/tmp/weft-bench-XXXXXX";
  const int file = ::mkstemp(name);
  checked(file, "mkstemp");
  if (::write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) checked(-1, "write");
  ::fchmod(file, 0644);
  ::close(file);
  const int mounted = ::mount(name, path, nullptr, MS_BIND, nullptr);
  ::unlink(name);
  checked(mounted, path);
}

class name_server {
 public:
  name_server() : id_{::fork()} {
    checked(id_, "fork");
    if (id_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int nowhere = ::open("/dev/null", O_RDWR);
      ::dup2(nowhere, STDOUT_FILENO);
      ::execl("/usr/sbin/dnsmasq", "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null",
              "--pid-file=", "--no-resolv", "--no-hosts", "--user=root", "--group=root", "--listen-address=127.0.0.1",
              "--bind-interfaces", "--cache-size=0", "--address=/bench.test/127.0.0.7",
              "--address=/bench.test/2001:db8::7", nullptr);
      ::_exit(127);
    }
    if (!answers()) throw bench::not_here{"there is no /usr/sbin/dnsmasq that answers"};
  }
  name_server(const name_server&) = delete;
  ~name_server() {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }

 private:
  static bool answers() {
    const int from = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(53);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    checked(::connect(from, reinterpret_cast<const sockaddr*>(&to), sizeof to), "connect");
    static constexpr std::string_view question{"\1\1\1\0\0\1\0\0\0\0\0\0\1a\5bench\4test\0\0\1\0\1", 30};
    bool has_answered = false;
    for (int i = 0; i != 200 && !has_answered; ++i) {
      ::send(from, question.data(), question.size(), 0);
      std::this_thread::sleep_for(10ms);
      std::array<char, 512> answer;
      has_answered = ::recv(from, answer.data(), answer.size(), 0) > 0;
    }
    ::close(from);
    return has_answered;
  }

  pid_t id_;
};

}  // namespace

void bench::run(state& state) {
  if (::access("/etc/resolv.conf", F_OK) != 0) throw not_here{"there is no /etc/resolv.conf"};
  enter_own_network();
  replace("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:5\n");
  replace("/etc/nsswitch.conf", "hosts: files dns\nservices: files\n");
  replace("/etc/hosts", "127.0.0.1 localhost\n");
  const name_server names;
  const server_process looks_up{state, {"1", std::to_string(large_buffer), std::to_string(state.size())}};
  const connection to{looks_up};
  const std::uint64_t lookups = 1000;
  state.measure(static_cast<double>(lookups), lookups, [&] {
    to.send(&lookups, sizeof lookups);
    std::uint64_t right = 0;
    to.receive(&right, sizeof right);
    return right;
  });
}
