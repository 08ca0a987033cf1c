// weft trace, but for its main(): what it makes of a file, what it says where that is none, and that of a process which goes on
// recording it gets whole events. What it finds in other programs is for attach_test.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>
#include <weft/recorder.hpp>
#include <weft/recording.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>
#include <weft/traced.hpp>

#include "memory.hpp"
#include "recording_of.hpp"
#include "support/json.hpp"
#include "support/weft_test.hpp"
#include "target.hpp"
#include "trace.hpp"
#include "trace/event_ring.hpp"

namespace {

using weft::event_kind;
using weft::recording;
using weft::task;

struct temporary {
  temporary() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-trace-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  temporary(const temporary&) = delete;
  ~temporary() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return path / name; }
  std::filesystem::path path;
};

struct outcome {
  int status;
  std::string out, err;
};
outcome trace(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  const int status = weft_tool::trace(arguments, out, err);
  return {status, out.str(), err.str()};
}
bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

TEST(weft_trace, writes_json_of_a_file) {
  auto request = []() -> task<> { co_return; };
  weft::sync_wait(weft::with_trace({.name = "a request"}, request));
  const temporary dir;
  weft::save_recording((dir / "saved").c_str());
  const outcome told = trace({dir / "saved"});
  EXPECT_EQ(told.status, 0);
  EXPECT_FALSE(test::json::parse(told.out)["traceEvents"].elements().empty());
  EXPECT_EQ(told.err, "");

  const outcome into_file = trace({"--output", dir / "json", dir / "saved"});
  EXPECT_EQ(into_file.status, 0);
  EXPECT_EQ(into_file.out, "");
  std::ifstream file{dir / "json"};
  EXPECT_EQ((std::string{std::istreambuf_iterator<char>{file}, {}}), told.out);
}

TEST(weft_trace, reads_a_recording_from_a_pipe) {
  const temporary dir;
  weft::save_recording((dir / "saved").c_str());
  std::ifstream saved{dir / "saved", std::ios::binary};
  const std::string bytes{std::istreambuf_iterator<char>{saved}, {}};
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  std::jthread writes{[&] {
    for (std::size_t done = 0; done != bytes.size();) {
      const ssize_t now = ::write(ends[1], bytes.data() + done, bytes.size() - done);
      if (now <= 0) break;
      done += static_cast<std::size_t>(now);
    }
    ::close(ends[1]);
  }};
  const outcome told = trace({"/dev/fd/" + std::to_string(ends[0])});
  writes.join();
  ::close(ends[0]);
  EXPECT_EQ(told.status, 0);
  EXPECT_EQ(told.err, "");
  EXPECT_EQ(told.out, trace({dir / "saved"}).out);
}

TEST(weft_trace, says_why_not) {
  const temporary dir;
  std::ofstream{dir / "none"} << std::string(200, 'x');
  const outcome none = trace({dir / "none"}), missing = trace({"/no such file"});
  EXPECT_EQ(none.status, 1);
  EXPECT_TRUE(has(none.err, "it does not begin as one")) << none.err;
  EXPECT_EQ(missing.status, 1);
  EXPECT_TRUE(has(missing.err, "/no such file")) << missing.err;
  const outcome itself = trace({std::to_string(::getpid())});
  EXPECT_EQ(itself.status, 1);
  EXPECT_TRUE(has(itself.err, "the process that looks")) << itself.err;
  weft::save_recording((dir / "saved").c_str());
  const outcome nowhere = trace({dir / "saved", "--output", "/no such directory/file"});
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_TRUE(has(nowhere.err, "/no such directory/file: cannot be written: No such file")) << nowhere.err;
}

TEST(weft_trace, says_how_it_is_used) {
  const outcome help = trace({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_TRUE(has(help.out, "usage: weft trace PID|CORE|FILE")) << help.out;
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {}, {"--sideways", "1"}, {"1", "2"}, {"1", "--output"}, {"/no such file", "--recording"}}) {
    const outcome told = trace(wrong);
    EXPECT_EQ(told.status, 2);
    EXPECT_EQ(told.out, "");
    EXPECT_TRUE(has(told.err, "usage: weft trace PID|CORE|FILE")) << told.err;
  }
}

// ---- a process that goes on --------------------------------------------------------------------------------------------------

// A child that writes into a ring as fast as it can, events of which each word follows from its number.
class writer {
 public:
  writer() {
    int begun[2];
    if (::pipe(begun) != 0) std::abort();
    child_ = ::fork();
    if (child_ == 0) {
      weft::detail::set_ring_bytes(places * sizeof(weft::recorded_event));
      weft::detail::event_ring* const ring = weft::detail::make_ring();
      if (ring == nullptr) ::_exit(1);
      for (std::uint64_t i = 1;; ++i) {
        ring->write(i, event_kind::call_thread, static_cast<std::uint16_t>(i), static_cast<std::uint32_t>(i), 3 * i,
                    ~i);
        if (i == 2 * places) static_cast<void>(!::write(begun[1], "x", 1));
      }
    }
    char one;
    has_begun = ::read(begun[0], &one, 1) == 1;
    ::close(begun[0]);
    ::close(begun[1]);
  }
  writer(const writer&) = delete;
  ~writer() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  int pid() const noexcept { return child_; }
  static constexpr std::uint64_t places = 1 << 15;
  bool has_begun = false;

 private:
  pid_t child_ = -1;
};

TEST(recording_of, has_whole_events_of_a_ring_that_is_written_to) {
  const writer other;
  ASSERT_TRUE(other.has_begun);
  std::unique_ptr<weft_tool::target> from;
  try {
    from = weft_tool::open_running(other.pid());
  } catch (const weft_tool::problem& what) {
    if (has(what.what(), "not permitted")) GTEST_SKIP() << "SKIPPED: no process may be traced here";
    throw;
  }
  std::uint64_t seen = 0, newest = 0;
  for (int look = 0; look != 12; ++look) {
    const weft_tool::recorded made = weft_tool::recording_of(*from);
    EXPECT_TRUE(made.is_complete);
    const recording all = recording::parse(made.file);
    std::uint64_t last = 0;
    for (const recording::event& one : all.events()) {
      if (one.ring != 0) continue;  // of before the fork
      ASSERT_EQ(one.kind, event_kind::call_thread);
      ASSERT_EQ(one.when, one.in_ring) << "the first event of all was another one";
      ASSERT_EQ(one.flags, static_cast<std::uint16_t>(one.when));
      ASSERT_EQ(one.number, static_cast<std::uint32_t>(one.when));
      ASSERT_EQ(one.first, 3 * one.when);
      ASSERT_EQ(one.second, ~one.when);
      ASSERT_EQ(one.thread, static_cast<std::uint32_t>(other.pid()));
      ASSERT_GT(one.in_ring, last);
      last = one.in_ring;
      ++seen;
    }
    if (last == 0) continue;  // all were written over before they were read
    EXPECT_GE(last, newest);
    newest = last;
  }
  EXPECT_GT(seen, 0U);
}

}  // namespace
