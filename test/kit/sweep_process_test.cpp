// Processes, with a stop at each place of each await, and without memory: none is left, whatever ends first.
#include <weft/process.hpp>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/sweep.hpp"

namespace {

using namespace test::in_sweeps;
using weft::process;
using weft::stdio;

struct leaves_no_child {
  static void check() {
    int how;
    require(::waitpid(-1, &how, WNOHANG) == -1 && errno == ECHILD, "a process was left");
  }
};

const std::vector<std::string> cat{"cat"};

template <class By>
struct talks : leaves_no_child {
  part<By> run() {
    process child{{.in = stdio::pipe(), .out = stdio::pipe()}, cat};
    co_await child.input.write("ab");
    co_await child.input.write_some(std::as_bytes(std::span{"c", 1}));
    child.input.close();
    std::string got;
    std::array<char, 2> buffer;
    while (const std::size_t size = co_await child.output.read(std::as_writable_bytes(std::span{buffer})))
      got.append(buffer.data(), size);
    require(got == "abc", "a byte was lost");
    const weft::exit_status how = co_await child.wait();
    require(how.is_success(), "it has failed");
  }
};
TEST(sweep, process) {
  sweep_both<talks>("process_reader::read, process_writer::write, process_writer::write_some, process::wait");
}

// It is known to ignore the first signal before it gets one: else it might end before anybody waits.
template <class By>
struct ends : leaves_no_child {
  part<By> run() {
    const process child{{.in = stdio::null(), .out = stdio::pipe()},
                        {"sh", "-c", "trap '' TERM; echo; exec sleep 1000"}};
    std::array<std::byte, 8> line;
    require(co_await child.output.read(line) == 1, "it has not begun");
    const weft::exit_status how = co_await child.end(1s);
    require(how.signal() != 0, "it has ended by itself");
  }
};
TEST(sweep, process_end) { sweep_both<ends>("process::end"); }

// Holds a process up until it has been waited for: what it reads to the end is closed then.
class gate {
 public:
  gate() {
    int both[2];
    if (::pipe2(both, O_CLOEXEC) != 0) std::abort();
    read_ = both[0];
    write_ = both[1];
  }
  gate(const gate&) = delete;
  ~gate() {
    open();
    ::close(read_);
  }
  int number() const { return read_; }
  void open() {
    if (write_ >= 0) ::close(std::exchange(write_, -1));
  }

 private:
  int read_, write_;
};

template <class By>
struct runs : leaves_no_child {
  gate door;
  part<By> opens() {
    co_await rest(1);
    door.open();
  }
  part<By> waits() {
    const weft::exit_status how = co_await weft::run_process({.in = stdio::descriptor(door.number())}, cat);
    require(how.is_success(), "it has failed");
  }
  part<By> run() { co_await together(waits(), opens()); }
};
TEST(sweep, run_process) { sweep_both<runs>("run_process", waits_for_the_other); }

template <class By>
struct collects : runs<By> {
  part<By> waits() {
    const weft::process_output got = co_await weft::output_of(
        {.process = {.descriptors = {this->door.number()}}, .input = "abc"}, {"/bin/sh", "-c", "cat - /dev/fd/3"});
    require(got.out == "abc" && got.status.is_success(), "its output was lost");
  }
  part<By> run() { co_await together(waits(), this->opens()); }
};
TEST(sweep, output_of) { sweep_both<collects>("output_of", waits_for_the_other); }

}  // namespace
