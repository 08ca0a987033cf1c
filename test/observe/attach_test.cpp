// The program weft, which looks into other programs: what it says of one must be what that one says of itself.
// Long because each way to look, and each kind of what is looked at, has a test.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>
#include <weft/recording.hpp>

namespace {

using nlohmann::json;
namespace fs = std::filesystem;
using clock = std::chrono::steady_clock;
constexpr auto patience = std::chrono::seconds{120};

struct temporary {
  temporary() {
    std::string name = (fs::temp_directory_path() / "weft-attach-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  temporary(const temporary&) = delete;
  ~temporary() { fs::remove_all(path); }
  fs::path path;
};

// ---- programs ---------------------------------------------------------------------------------------------------------

struct outcome {
  int status = -1;
  std::string out, err;
};

// Runs a program to its end.
outcome run(const std::vector<std::string>& words) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) return {};
  std::vector<char*> all;
  for (const std::string& one : words) all.push_back(const_cast<char*>(one.c_str()));
  all.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    ::execvp(all[0], all.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  outcome seen;
  pollfd both[2]{{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* const into[2]{&seen.out, &seen.err};
  for (int open = 2; open != 0;) {
    ::poll(both, 2, -1);
    for (int i = 0; i != 2; ++i) {
      if (both[i].fd < 0 || both[i].revents == 0) continue;
      char some[65536];
      const ssize_t got = ::read(both[i].fd, some, sizeof some);
      if (got > 0) {
        into[i]->append(some, static_cast<std::size_t>(got));
      } else {
        both[i].fd = -1;
        --open;
      }
    }
  }
  ::close(out[0]);
  ::close(err[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  seen.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return seen;
}

// Once more where a thread did not come to stand in time, since the machine had stalled it.
outcome weft_tool(std::vector<std::string> words) {
  words.insert(words.begin(), WEFT_TOOL);
  outcome seen = run(words);
  for (int i = 0; i != 10 && seen.err.find("does not stop") != seen.err.npos; ++i) seen = run(words);
  return seen;
}

// A program to be looked into. It has written its own snapshot, and all its tasks wait.
class looked_into {
 public:
  explicit looked_into(const std::string& program, std::vector<std::string> words, const fs::path& where = ".") {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) std::abort();
    words.insert(words.begin(), program);
    std::vector<char*> all;
    for (const std::string& one : words) all.push_back(const_cast<char*>(one.c_str()));
    all.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      if (::chdir(where.c_str()) != 0) ::_exit(126);
      ::execv(all[0], all.data());
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    keeps_open_ = in[1];
    std::string text;
    char some[65536];
    for (ssize_t got; text.find("ready\n") == text.npos && (got = ::read(out[0], some, sizeof some)) > 0;)
      text.append(some, static_cast<std::size_t>(got));
    ::close(out[0]);
    EXPECT_NE(text.find("ready\n"), text.npos) << program << " said: " << text.substr(0, 1000);
    itself = json::parse(text.substr(0, text.find('\n')), nullptr, false);
  }
  looked_into(const looked_into&) = delete;
  ~looked_into() {
    ::close(keeps_open_);
    if (pid_ > 0) static_cast<void>(end());
  }

  // Waits until it has ended by itself.
  int end() {
    ::close(std::exchange(keeps_open_, -1));
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }

  std::string pid() const { return std::to_string(pid_); }
  json itself;

 private:
  pid_t pid_ = -1;
  int keeps_open_ = -1;
};

// ---- comparing ----------------------------------------------------------------------------------------------------------

// An id without its generation, which only the process itself knows.
std::string address_of(const json& id) {
  if (!id.is_string()) return {};
  const auto text = id.get<std::string>();
  return text.substr(0, text.find('.'));
}

// What both say of the tasks, in an order of their own.
std::map<std::string, json> tasks_of(const json& all) {
  std::map<std::string, json> found;
  for (const json& one : all.at("tasks")) {
    json seen;
    seen["parent"] = address_of(one.at("parent"));
    for (const char* key : {"kind", "state", "function", "stack", "stop_requested", "is_shielded"})
      seen[key] = one.at(key);
    seen["cause"] = one.value("cause", json{});
    seen["has_deadline"] = one.contains("deadline_in_ms");
    seen["deadline_set_at"] = one.value("deadline_set_at", json{});
    seen["waits"] = json::array();
    for (const json& what : one.at("waits"))
      seen["waits"].push_back(
          {{"what", what.at("what")}, {"at", what.at("at")}, {"holder", address_of(what.at("holder"))}});
    found[address_of(one.at("id"))] = std::move(seen);
  }
  return found;
}

// What those are in that run is told from outside alone, where a task also has its name from that.
void forget_stacks_of_running(std::map<std::string, json>& tasks) {
  for (auto& [id, one] : tasks)
    if (one.at("state") == "running") one["stack"] = one["function"] = json{};
}

// What both say of threads, and of the pools that those work for.
std::map<int, json> workers_of(const json& all) {
  std::map<int, json> found;
  for (const json& one : all.at("workers")) {
    const int pool = one.at("pool").get<int>();
    found[one.at("thread").get<int>()] = {
        {"runs", address_of(one.at("runs"))},
        {"queued", one.at("queued")},
        {"pool", pool < 0 ? json{} : all.at("pools").at(static_cast<std::size_t>(pool)).at("executor")}};
  }
  return found;
}
std::map<std::string, int> pools_of(const json& all) {
  std::map<std::string, int> found;
  for (const json& one : all.at("pools")) found[one.at("executor").get<std::string>()] = one.at("workers").get<int>();
  return found;
}

std::set<std::set<std::string>> deadlocks_of(const json& all) {
  std::set<std::set<std::string>> found;
  for (const json& circle : all.at("deadlocks")) {
    std::set<std::string> members;
    for (const json& one : circle) members.insert(address_of(one));
    found.insert(members);
  }
  return found;
}

// Of several circles through the same tasks, the library tells the one through the oldest of them. From outside no age is known.
void expect_same_deadlocks(const json& itself, const json& seen) {
  const auto inside = deadlocks_of(itself), outside = deadlocks_of(seen);
  EXPECT_EQ(inside.size(), outside.size());
  for (const auto& circle : outside) {
    const auto meets = [&](const auto& other) {
      return std::ranges::any_of(other, [&](const std::string& member) { return circle.contains(member); });
    };
    EXPECT_EQ(std::ranges::count_if(inside, meets), 1) << json(circle);
  }
}

void expect_equal(const json& itself, const json& seen) {
  auto a = tasks_of(itself), b = tasks_of(seen);
  forget_stacks_of_running(a);
  forget_stacks_of_running(b);
  EXPECT_EQ(a.size(), b.size());
  for (const auto& [id, one] : a) {
    const auto other = b.find(id);
    if (other == b.end()) {
      ADD_FAILURE() << "not seen from outside: " << id << ' ' << one;
      continue;
    }
    EXPECT_EQ(one, other->second) << id;
  }
  for (const auto& [id, one] : b) EXPECT_TRUE(a.contains(id)) << "only seen from outside: " << id << ' ' << one;
  expect_same_deadlocks(itself, seen);
  EXPECT_EQ(workers_of(itself), workers_of(seen));
  EXPECT_EQ(pools_of(itself), pools_of(seen));
  EXPECT_EQ(itself.at("is_stuck"), seen.at("is_stuck"));
}

json parsed(const outcome& told) {
  EXPECT_EQ(told.status, 0) << told.err;
  json all = json::parse(told.out, nullptr, false);
  EXPECT_FALSE(all.is_discarded()) << told.out.substr(0, 1000);
  return all;
}

json seen_of(const std::string& which) {
  json all = parsed(weft_tool({"dump", which, "--json"}));
  EXPECT_EQ(all.value("is_complete", false), true);
  return all;
}

bool may_trace() {
  static const bool may = [] {
    const looked_into probe{ATTACH_TARGET, {"all"}};
    const outcome dump = weft_tool({"dump", probe.pid()});
    return dump.err.find("not permitted") == dump.err.npos;
  }();
  return may;
}

class attach : public testing::Test {
 protected:
  void SetUp() override {
    if (!may_trace()) GTEST_SKIP() << "SKIPPED: no process may be traced here";
  }
};

// ---- processes ----------------------------------------------------------------------------------------------------------

TEST_F(attach, sees_what_a_process_says_of_itself) {
  const looked_into one{ATTACH_TARGET, {"all"}};
  const json seen = seen_of(one.pid());
  expect_equal(one.itself, seen);
  EXPECT_EQ(deadlocks_of(seen).size(), 1u);
  EXPECT_EQ(seen.at("late_reads"), 0);
  std::map<std::string, int> waits;
  int selects = 0, told = 0, once_held = 0;
  for (const auto& [id, task] : tasks_of(seen)) {
    selects += task["waits"].size() > 1;
    told += task["stop_requested"] && task["is_shielded"];
    for (const json& what : task["waits"]) {
      ++waits[what["what"].get<std::string>()];
      once_held += what["what"] == "once" && what["holder"] != "";
    }
  }
  EXPECT_EQ(selects, 5)
      << "of two cases, of one of each kind, of cases without their types, and of some that are there if";
  EXPECT_EQ(told, 2) << "by a scope and alone, and both put it off";
  EXPECT_EQ(once_held, 1);
  for (const char* name : {"once", "broadcast, to send", "barrier", "stop of others", "broadcast, to receive"})
    EXPECT_EQ(waits[name], name == std::string_view{"broadcast, to receive"} ? 3
                           : name == std::string_view{"stop of others"}      ? 2
                                                                             : 1)
        << name;
  EXPECT_EQ(waits["select"], 1) << "each case is told; one select has none";
  const auto has_cases = [&](std::size_t count) {
    return std::ranges::count_if(seen.at("tasks"), [&](const json& one) { return one.at("waits").size() == count; });
  };
  EXPECT_EQ(has_cases(9), 1) << "of thirteen, of which four are not there";
  EXPECT_EQ(has_cases(12), 1) << "of sixty, of which every fifth is there";
  EXPECT_EQ(seen.at("pools").size(), 1u);
}

TEST_F(attach, sees_who_waits_for_each_other_as_the_process_does) {
  const looked_into one{ATTACH_TARGET, {"circles"}};
  const json seen = seen_of(one.pid());
  expect_equal(one.itself, seen);
  EXPECT_EQ(deadlocks_of(seen).size(), 5u) << "and two that a timeout and a deadline end";
  const auto tasks = tasks_of(seen);
  std::set<std::string> waits;
  for (const auto& circle : deadlocks_of(seen))
    for (const std::string& member : circle) waits.insert(tasks.at(member).at("waits").at(0).at("what"));
  EXPECT_EQ(waits, (std::set<std::string>{"children of a scope", "children of a when_all", "fork", "mutex", "once",
                                          "shared_task"}));
}

TEST_F(attach, sees_why_one_was_told_to_stop) {
  const looked_into one{ATTACH_TARGET, {"all"}};
  const json seen = seen_of(one.pid());
  int told = 0;
  for (const json& task : seen.at("tasks"))
    if (task.contains("cause") && task.at("cause").at("reason") == "the target says so") {
      ++told;
      EXPECT_NE(task.at("cause").at("file").get<std::string>().find("attach_target.cpp"), std::string::npos) << task;
      EXPECT_GT(task.at("cause").at("line"), 0);
    }
  EXPECT_GT(told, 0);
  const outcome text = weft_tool({"dump", one.pid()});
  EXPECT_NE(text.out.find("told to stop (the target says so, "), std::string::npos) << text.out;
}

// Long before it passes.
TEST_F(attach, sees_which_line_has_set_a_deadline) {
  const looked_into one{ATTACH_TARGET, {"circles"}};
  const json seen = seen_of(one.pid());
  int known = 0;
  for (const json& task : seen.at("tasks")) {
    EXPECT_EQ(task.contains("deadline_set_at"), task.contains("deadline_in_ms")) << task;
    if (!task.contains("deadline_set_at")) continue;
    ++known;
    const json& where = task.at("deadline_set_at");
    EXPECT_NE(where.at("file").get<std::string>().find("attach_target.cpp"), std::string::npos) << where;
    EXPECT_NE(where.at("function").get<std::string>().find("has_deadline"), std::string::npos) << where;
    EXPECT_GT(where.at("line"), 0);
    EXPECT_GT(task.at("deadline_in_ms"), 3'000'000) << "an hour, and it was set just now";
  }
  EXPECT_GT(known, 0);
  const outcome text = weft_tool({"dump", one.pid()});
  const std::size_t set_at = text.out.find(" ms (set at ");
  EXPECT_NE(text.out.find("has_deadline(weft::mutex", set_at), std::string::npos) << text.out;
}

TEST_F(attach, sees_since_when_one_waits_that_is_traced) {
  const looked_into one{ATTACH_TARGET, {"traced_wait"}};
  const json seen = seen_of(one.pid());
  expect_equal(one.itself, seen);
  ASSERT_EQ(seen.at("tasks").size(), 1U);
  const json &itself = one.itself.at("tasks")[0], &task = seen.at("tasks")[0];
  ASSERT_TRUE(itself.contains("waiting_ms")) << itself;
  ASSERT_TRUE(task.contains("waiting_ms")) << task;
  EXPECT_GE(task.at("waiting_ms").get<int>() + 1, itself.at("waiting_ms").get<int>()) << "it is looked at later";
  const looked_into other{ATTACH_TARGET, {"all"}};
  const json all = seen_of(other.pid());
  for (const json& untraced : all.at("tasks")) EXPECT_FALSE(untraced.contains("waiting_ms")) << untraced;
}

TEST_F(attach, sees_since_when_one_runs_that_is_traced) {
  const looked_into one{ATTACH_TARGET, {"traced_run"}};
  const json seen = seen_of(one.pid());
  expect_equal(one.itself, seen);
  const auto times = [](const json& all, const char* of) {
    std::map<int, int> found;  // by thread
    for (const json& each : all.at(of))
      if (each.contains("running_ms")) {
        const bool is_worker = each.contains("thread");
        const json& worker = is_worker ? each : all.at("workers").at(each.at("worker").get<std::size_t>());
        found[worker.at("thread").get<int>()] = each.at("running_ms").get<int>();
      }
    return found;
  };
  for (const char* of : {"workers", "tasks"}) {
    const auto itself = times(one.itself, of), outside = times(seen, of);
    ASSERT_EQ(itself.size(), 2U) << one.itself;
    ASSERT_EQ(outside.size(), 2U) << seen;
    for (const auto& [thread, ms] : itself) {
      EXPECT_GE(ms, 29);
      EXPECT_GE(outside.at(thread) + 1, ms) << "it is looked at later";
    }
  }
  for (const json& task : seen.at("tasks")) EXPECT_FALSE(task.contains("waiting_ms")) << task;
  const outcome text = weft_tool({"dump", one.pid()}), top = weft_tool({"top", "--once", one.pid()});
  EXPECT_TRUE(std::regex_search(text.out, std::regex{"running in thread [0-9]+, for [0-9]+ ms"})) << text.out;
  EXPECT_TRUE(std::regex_search(top.out, std::regex{"[0-9]+ +0 .*, for [0-9]+ ms\n"})) << top.out;
  const looked_into other{ATTACH_TARGET, {"running"}};
  const json untraced = seen_of(other.pid());
  for (const json& worker : untraced.at("workers")) EXPECT_FALSE(worker.contains("running_ms")) << worker;
  for (const json& task : untraced.at("tasks")) EXPECT_FALSE(task.contains("running_ms")) << task;
}

TEST_F(attach, sees_fibers_with_their_calls) {
  const looked_into one{ATTACH_TARGET, {"fibers", "200"}};
  const json seen = seen_of(one.pid());
  expect_equal(one.itself, seen);
  EXPECT_NE(seen.dump().find("deep(int)"), std::string::npos);
  EXPECT_EQ(seen.at("late_reads"), 0);
}

TEST_F(attach, sees_what_a_body_has_forked_that_blocks_its_thread) {
  const looked_into one{ATTACH_TARGET, {"starting", "1000"}};
  const json seen = seen_of(one.pid());
  expect_equal(one.itself, seen);
  EXPECT_GE(seen.at("tasks").size(), 1002u);
}

// The stacks of those that run, by their outermost function: names, and of plain functions that the frame is of no coroutine.
std::map<std::string, json> running_in(const json& seen) {
  std::map<std::string, json> found;
  for (const json& one : seen.at("tasks"))
    if (one.at("state") == "running") {
      EXPECT_GE(one.at("worker"), 0);
      found.emplace(one.at("function"), one);
    }
  return found;
}

// Whether they are in the stack, in this order.
testing::AssertionResult has_calls(const json& task, const std::vector<std::string>& functions) {
  auto next = functions.begin();
  for (const json& one : task.at("stack"))
    if (next != functions.end() && one.get<std::string>().find(*next) != std::string::npos) ++next;
  if (next == functions.end()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << *next << " is missing in " << task.at("stack");
}

void expect_stacks_of_running(const json& seen) {
  const auto running = running_in(seen);
  ASSERT_EQ(running.size(), 4U) << seen.at("tasks");
  const auto in = [&](const char* function) {
    for (const auto& [name, one] : running)
      if (one.at("stack").dump().find(function) != std::string::npos) return one;
    ADD_FAILURE() << function << " is in none of " << json(running);
    return json::object();
  };
  const json blocks = in("blocks("), serves = in("serves("), fiber = in("computes_in_fiber("),
             awaits = in("awaits_in_fiber(");
  EXPECT_TRUE(has_calls(serves, {"spins(int)", "spins(int)", "spins(int)", "computes(", "serves("}));
  EXPECT_TRUE(has_calls(fiber, {"spins(int)", "spins(int)", "computes_in_fiber("}));
  EXPECT_TRUE(has_calls(awaits, {"spins(int)", "spins(int)", "spins(int)", "computes(", "awaits_in_fiber("}));
  EXPECT_TRUE(has_calls(blocks, {"reads(", "blocks("}));
  EXPECT_EQ(serves.at("kind"), "fork");
  EXPECT_EQ(fiber.at("kind"), "fiber");
  EXPECT_EQ(awaits.at("kind"), "fiber");
  EXPECT_EQ(blocks.at("kind"), "fork");
  EXPECT_EQ(address_of(serves.at("parent")), address_of(blocks.at("parent"))) << "the task that waits for the scope";
  for (const auto& [name, one] : running) {
    ASSERT_EQ(one.at("stack").size(), one.at("frames").size());
    for (std::size_t i = 0; i != one.at("stack").size(); ++i) {
      const auto function = one.at("stack")[i].get<std::string>();
      const auto is_of = [&](const char* name) { return function.find(name) != std::string::npos; };
      const bool is_coroutine = is_of("::computes(") || is_of("::serves(") || is_of("::blocks(");
      if (is_coroutine) {
        EXPECT_NE(one.at("frames")[i].at("at"), "0x0") << function;
      }
      if (is_of("::spins(") || is_of("::reads(")) {
        EXPECT_EQ(one.at("frames")[i].at("at"), "0x0") << function;
      }
    }
  }
}

TEST_F(attach, sees_what_those_are_in_that_run) {
  const looked_into one{ATTACH_TARGET, {"running"}};
  expect_stacks_of_running(seen_of(one.pid()));
  const outcome text = weft_tool({"dump", one.pid()});
  EXPECT_NE(text.out.find("spins(int)\n"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("computes_in_fiber()\n"), std::string::npos) << text.out;
  const json without = parsed(weft_tool({"dump", "--no-stacks", one.pid(), "--json"}));
  for (const json& task : without.at("tasks")) EXPECT_TRUE(task.at("stack").empty()) << task;
}

TEST_F(attach, sees_what_those_are_in_that_run_in_a_program_that_was_stripped) {
  const temporary dir;
  const std::string program = dir.path / "stripped";
  ASSERT_EQ(run({"strip", "-o", program, ATTACH_TARGET}).status, 0);
  const looked_into one{program, {"running"}};
  const json seen = seen_of(one.pid());
  std::multiset<std::size_t> depths;
  for (const json& task : seen.at("tasks"))
    if (task.at("state") == "running")
      depths.insert(static_cast<std::size_t>(std::ranges::count_if(task.at("stack"), [](const json& call) {
        return call.get<std::string>().find("stripped+0x") != std::string::npos;
      })));
  ASSERT_EQ(depths.size(), 4U);
  EXPECT_GE(*depths.begin(), 2U) << "calls and coroutines, without their names";
  EXPECT_GE(*depths.rbegin(), 5U);
}

TEST_F(attach, sees_a_process_whose_first_thread_has_ended) {
  const looked_into one{ATTACH_TARGET, {"without_main"}};
  const json seen = seen_of(one.pid());
  EXPECT_EQ(seen.at("tasks").size(), one.itself.at("tasks").size());
  EXPECT_EQ(deadlocks_of(seen).size(), 1u);
}

TEST_F(attach, sees_a_program_that_was_stripped) {
  const temporary dir;
  const std::string program = dir.path / "stripped";
  ASSERT_EQ(run({"strip", "-o", program, ATTACH_TARGET}).status, 0);
  for (const char* kind : {"all", "fibers"}) {
    const looked_into one{program, {kind, "20"}};
    const json seen = seen_of(one.pid());
    expect_equal(one.itself, seen);
    EXPECT_NE(seen.dump().find("stripped+0x"), std::string::npos) << "where no name is known, the place is told";
  }
}

TEST_F(attach, gives_a_terminal_no_commands_of_the_program_that_it_looks_into) {
  const temporary dir;
  const std::string program = dir.path / "\x1b[2J\xc2\x9b";
  ASSERT_EQ(run({"strip", "-o", program, ATTACH_TARGET}).status, 0);
  const looked_into one{program, {"all"}};
  for (const outcome& shown : {weft_tool({"dump", one.pid()}), weft_tool({"top", one.pid(), "--once"}),
                               weft_tool({"dump", one.pid(), "--json"})}) {
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_NE(shown.out.find("/?[2J?+0x"), std::string::npos) << shown.out.substr(0, 1000);
    EXPECT_EQ(shown.out.find('\x1b'), std::string::npos);
    EXPECT_EQ(shown.out.find("\xc2\x9b"), std::string::npos);
  }
}

#ifdef ATTACH_TARGET_STATIC
TEST_F(attach, sees_what_those_are_in_that_run_in_a_static_program) {
  const looked_into one{ATTACH_TARGET_STATIC, {"running"}};
  expect_stacks_of_running(seen_of(one.pid()));
}

TEST_F(attach, sees_a_static_program) {
  for (const char* kind : {"all", "fibers"}) {
    const looked_into one{ATTACH_TARGET_STATIC, {kind, "20"}};
    expect_equal(one.itself, seen_of(one.pid()));
  }
}
#endif

TEST_F(attach, lets_go_of_the_process) {
  looked_into one{ATTACH_TARGET, {"all"}};
  for (int i = 0; i != 5; ++i) EXPECT_EQ(weft_tool({"dump", one.pid()}).status, 0);
  EXPECT_EQ(one.end(), 0) << "it runs on, and hears that its input has ended";
}

TEST_F(attach, names_the_deadlock_in_text_and_in_the_graph) {
  const looked_into one{ATTACH_TARGET, {"all"}};
  const outcome text = weft_tool({"dump", one.pid()});
  EXPECT_NE(text.out.find("DEADLOCK: "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("transfer("), std::string::npos);
  EXPECT_NE(text.out.find("its threads stood for "), std::string::npos);
  const outcome dot = weft_tool({"dump", one.pid(), "--dot"});
  EXPECT_EQ(dot.out.rfind("digraph weft {", 0), 0u);
  EXPECT_NE(dot.out.find("color=red"), std::string::npos);
}

TEST_F(attach, hints_that_all_tasks_are_asleep) {
  const looked_into sleeping{ATTACH_TARGET, {"fibers", "3"}}, others{ATTACH_TARGET, {"all"}};
  EXPECT_EQ(seen_of(sleeping.pid()).at("is_stuck"), true);
  EXPECT_EQ(weft_tool({"dump", sleeping.pid()}).out.rfind("STUCK: every task waits for what only another task", 0), 0U);
  EXPECT_NE(weft_tool({"top", sleeping.pid(), "--once"}).out.find("\nSTUCK: every task waits"), std::string::npos);
  EXPECT_EQ(seen_of(others.pid()).at("is_stuck"), false) << "there a timer is pending";
  EXPECT_EQ(weft_tool({"dump", others.pid()}).out.find("STUCK"), std::string::npos);
}

// What was not copied at the first look is copied at the second one.
TEST_F(attach, sees_a_deadlock_in_memory_that_is_too_much_to_be_copied) {
  const looked_into one{ATTACH_TARGET, {"all_in_much_memory"}};
  const json seen = seen_of(one.pid());
  expect_equal(one.itself, seen);
  EXPECT_EQ(deadlocks_of(seen).size(), 1U);
  EXPECT_EQ(seen.at("late_reads"), 0);
}

// At each look most of the tasks wait; who holds the mutexes is read later, and is one that has waited before.
TEST_F(attach, takes_no_mutexes_that_change_hands_for_a_deadlock) {
  const looked_into one{ATTACH_TARGET, {"contended"}};
  for (int i = 0; i != 20; ++i) {
    const outcome dump = weft_tool({"dump", one.pid(), "--json"});
    const json seen = parsed(dump);
    EXPECT_EQ(deadlocks_of(seen).size(), 0U) << dump.out;
    EXPECT_GE(seen.at("tasks").size(), 33U);
  }
}

// ---- core files ---------------------------------------------------------------------------------------------------------

class attach_to_core : public attach {
 protected:
  // By gdb, which leaves the process to itself again. Empty: gdb is not here.
  std::string core_of(const looked_into& one) {
#ifdef WITH_GDB
    std::string path = dir_.path / "core";
    const outcome made = run(
        {WITH_GDB, "-batch", "-nx", "-ex", "set confirm off", "-ex", "generate-core-file " + path, "-p", one.pid()});
    if (fs::exists(path)) return path;
    ADD_FAILURE() << made.out << made.err;
#else
    static_cast<void>(one);
#endif
    return {};
  }
  temporary dir_;
};

TEST_F(attach_to_core, sees_what_the_process_said_of_itself) {
  // gdb leaves out of a core file what lies beside a guard by madvise: it reads large pieces, and gives up at the first page
  // that can't be read. The kernel's own core files have all.
  for (const char* kind : {"all", "fibers", "starting"}) {
    const looked_into one{ATTACH_TARGET, {kind, "30", "mprotect"}};
    const std::string core = core_of(one);
    if (core.empty()) GTEST_SKIP() << "SKIPPED: no gdb here";
    expect_equal(one.itself, seen_of(core));
    fs::remove(core);
  }
}

TEST_F(attach_to_core, sees_what_those_are_in_that_run) {
  const looked_into one{ATTACH_TARGET, {"running", "0", "mprotect"}};
  const std::string core = core_of(one);
  if (core.empty()) GTEST_SKIP() << "SKIPPED: no gdb here";
  const json seen = parsed(weft_tool({"dump", core, "--json"}));
  expect_stacks_of_running(seen);
}

// By the kernel, of a program that aborts.
TEST_F(attach_to_core, sees_a_program_that_has_crashed) {
  std::string pattern;
  std::getline(std::ifstream{"/proc/sys/kernel/core_pattern"}, pattern);
  if (pattern.empty() || pattern.front() == '|' || pattern.find('/') != pattern.npos)
    GTEST_SKIP() << "SKIPPED: the kernel gives core files to a program or a folder here: " << pattern;
  rlimit before{};
  ::getrlimit(RLIMIT_CORE, &before);
  const rlimit all{RLIM_INFINITY, RLIM_INFINITY}, most{before.rlim_max, before.rlim_max};
  if (::setrlimit(RLIMIT_CORE, &all) != 0) ::setrlimit(RLIMIT_CORE, &most);
  rlimit now{};
  ::getrlimit(RLIMIT_CORE, &now);
  int status = 0;
  json itself;
  if (now.rlim_cur != 0) {
    looked_into one{ATTACH_TARGET, {"crash"}, dir_.path};
    itself = one.itself;
    status = one.end();
  }
  ::setrlimit(RLIMIT_CORE, &before);
  if (now.rlim_cur == 0) GTEST_SKIP() << "SKIPPED: no core files are allowed here";
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGABRT);
  if (!WCOREDUMP(status)) GTEST_SKIP() << "SKIPPED: the kernel has written no core file";
  std::vector<std::string> files;
  for (const fs::directory_entry& file : fs::directory_iterator{dir_.path}) files.push_back(file.path());
  ASSERT_EQ(files.size(), 1u);
  const json seen = seen_of(files.front());
  expect_equal(itself, seen);
  EXPECT_EQ(deadlocks_of(seen).size(), 1u);
}

TEST_F(attach_to_core, says_what_is_wrong_with_a_core_file_that_was_cut_off) {
  const looked_into one{ATTACH_TARGET, {"all"}};
  const std::string core = core_of(one);
  if (core.empty()) GTEST_SKIP() << "SKIPPED: no gdb here";
  const auto size = fs::file_size(core);
  // From the largest to the smallest: cutting takes place.
  for (const auto part : {size - size / 10, size / 2, size / 4, std::uintmax_t{100'000}, std::uintmax_t{1000},
                          std::uintmax_t{100}, std::uintmax_t{10}, std::uintmax_t{0}}) {
    fs::resize_file(core, part);
    const outcome dump = weft_tool({"dump", core});
    if (dump.status == 0) {
      EXPECT_NE(dump.out.find("cut off"), std::string::npos) << part << ": " << dump.out.substr(0, 500);
    } else {
      EXPECT_EQ(dump.status, 1) << part << ": " << dump.err;
      EXPECT_EQ(dump.err.rfind("weft: ", 0), 0u) << dump.err;
    }
  }
}

// ---- the flight recorder ------------------------------------------------------------------------------------------------

using weft::recording;

std::string bytes_of(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

recording recorded_in(const std::string& which, const fs::path& file) {
  const outcome told = weft_tool({"trace", which, "--recording", "--output", file});
  EXPECT_EQ(told.status, 0) << told.err;
  EXPECT_EQ(told.err, "");
  EXPECT_EQ(told.out, "");
  return recording::read(file.c_str());
}

// What a process has saved itself must be what is found from outside. It rests meanwhile, but for a worker that may fall asleep
// late.
void expect_equal(const recording& itself, const recording& seen, bool has_thread_names) {
  EXPECT_TRUE(seen.is_whole());
  EXPECT_EQ(seen.process(), itself.process());
  std::map<std::pair<std::uint32_t, std::uint64_t>, recording::event> all;
  for (const recording::event& one : seen.events()) all.emplace(std::pair{one.ring, one.in_ring}, one);
  EXPECT_EQ(all.size(), seen.events().size()) << "an event was found twice";
  std::size_t equal = 0;
  for (const recording::event& one : itself.events()) {
    const auto found = all.find({one.ring, one.in_ring});
    if (found == all.end()) {
      ADD_FAILURE() << "not seen from outside: event " << one.in_ring << " of ring " << one.ring;
      continue;
    }
    const recording::event& other = found->second;
    EXPECT_EQ(one.when, other.when);
    EXPECT_EQ(one.kind, other.kind);
    EXPECT_EQ(one.flags, other.flags);
    EXPECT_EQ(one.number, other.number);
    EXPECT_EQ(one.first, other.first);
    EXPECT_EQ(one.second, other.second);
    EXPECT_EQ(one.thread, other.thread);
    EXPECT_EQ(itself.text(one.second), seen.text(one.second));
    if (one.kind == weft::event_kind::turn_begins) {
      EXPECT_EQ(itself.function(one.second), seen.function(one.second));
    }
    if (has_thread_names) {
      EXPECT_EQ(itself.thread_name(one.thread), seen.thread_name(one.thread));
    }
    ++equal;
  }
  EXPECT_GT(equal, 100U);
  for (const recording::event& one : seen.events())
    if (one.when > itself.events().back().when) {
      EXPECT_TRUE(one.kind == weft::event_kind::sleep || one.kind == weft::event_kind::wake_up);
    }
}

// By what the target is known to have done.
void expect_known_events(const json& all, const std::string& function) {
  std::multiset<std::string> names, reasons, threads;
  for (const json& one : all.at("traceEvents")) {
    names.insert(one.at("name"));
    if (one.at("name") == "stop") reasons.insert(one.at("args").at("second"));
    if (one.at("name") == "thread_name") threads.insert(one.at("args").at("name"));
  }
  EXPECT_EQ(reasons.count("of one thread"), 1U);
  EXPECT_EQ(reasons.count("of another one"), 1U);
  EXPECT_EQ(reasons.count("the last ones count"), 63U) << "a ring of 64 places has the last 63 events";
  EXPECT_EQ(names.count("request begins"), 3U);
  EXPECT_EQ(names.count("request ends"), 3U);
  for (const char* request : {"GET /cart #1", "GET /cart #2", "GET /cart #3"}) EXPECT_EQ(threads.count(request), 1U);
  EXPECT_TRUE(std::ranges::any_of(names, [&](const std::string& one) { return one.find(function) != one.npos; }));
  EXPECT_GT(names.count("channel, to receive") + names.count("channel, to send"), 0U) << "arrows from wake-ups";
}

TEST_F(attach, traces_what_a_process_has_recorded) {
  const temporary dir;
  const std::string own = dir.path / "own";
  const looked_into one{ATTACH_TARGET, {"traced", own}};
  expect_equal(recording::read(own.c_str()), recorded_in(one.pid(), dir.path / "seen"), true);
  EXPECT_EQ(bytes_of(own).substr(48, 24), bytes_of(dir.path / "seen").substr(48, 24)) << "when it began";
  expect_known_events(parsed(weft_tool({"trace", one.pid()})), "serve_cart(");
  // By way of a file, it is the same.
  expect_known_events(parsed(weft_tool({"trace", own})), "serve_cart(");
  expect_known_events(parsed(weft_tool({"trace", dir.path / "seen"})), "serve_cart(");
}

TEST_F(attach, traces_into_a_file) {
  const temporary dir;
  const looked_into one{ATTACH_TARGET, {"traced", dir.path / "own"}};
  const fs::path file = dir.path / "trace.json";
  outcome told = weft_tool({"trace", "--output", file, one.pid()});
  EXPECT_EQ(told.status, 0) << told.err;
  EXPECT_EQ(told.out, "");
  told.out = bytes_of(file);
  expect_known_events(parsed(told), "serve_cart(");
  // Where there is nothing to write, it stays as it is.
  EXPECT_EQ(weft_tool({"trace", "999999999", "--output", file}).status, 1);
  EXPECT_EQ(bytes_of(file), told.out);
}

TEST_F(attach, traces_a_program_that_was_stripped) {
  const temporary dir;
  const std::string program = dir.path / "stripped", own = dir.path / "own";
  ASSERT_EQ(run({"strip", "-o", program, ATTACH_TARGET}).status, 0);
  const looked_into one{program, {"traced", own}};
  expect_equal(recording::read(own.c_str()), recorded_in(one.pid(), dir.path / "seen"), true);
  expect_known_events(parsed(weft_tool({"trace", one.pid()})), "stripped+0x");
}

#ifdef ATTACH_TARGET_STATIC
TEST_F(attach, traces_a_static_program) {
  const temporary dir;
  const std::string own = dir.path / "own";
  const looked_into one{ATTACH_TARGET_STATIC, {"traced", own}};
  expect_equal(recording::read(own.c_str()), recorded_in(one.pid(), dir.path / "seen"), true);
}
#endif

TEST_F(attach_to_core, traces_what_was_recorded) {
  const std::string own = dir_.path / "own";
  const looked_into one{ATTACH_TARGET, {"traced", own}};
  const std::string core = core_of(one);
  if (core.empty()) GTEST_SKIP() << "SKIPPED: no gdb here";
  expect_equal(recording::read(own.c_str()), recorded_in(core, dir_.path / "seen"), false);
  expect_known_events(parsed(weft_tool({"trace", core})), "serve_cart(");
}

TEST_F(attach, traces_a_process_that_goes_on_recording) {
  looked_into one{ATTACH_TARGET, {"busy"}};
  std::size_t requests = 0;
  for (int i = 0; i != 3; ++i) {
    const json all = parsed(weft_tool({"trace", one.pid()}));
    for (const json& event : all.at("traceEvents")) requests += event.at("name") == "request begins";
  }
  EXPECT_GT(requests, 0U);
  EXPECT_EQ(one.end(), 0) << "it runs on, and hears that its input has ended";
}

TEST_F(attach, traces_a_process_whose_first_thread_has_ended) {
  const looked_into one{ATTACH_TARGET, {"without_main"}};
  const json all = parsed(weft_tool({"trace", one.pid()}));
  EXPECT_TRUE(std::ranges::any_of(all.at("traceEvents"), [](const json& event) {
    return event.at("name") == "stop" && event.at("args").at("second") == "without main";
  })) << all;
}

TEST_F(attach, says_that_the_recorder_is_switched_off) {
  const looked_into one{ATTACH_TARGET, {"records_nothing"}};
  const outcome told = weft_tool({"trace", one.pid()});
  EXPECT_EQ(told.status, 1);
  EXPECT_EQ(told.out, "");
  EXPECT_NE(told.err.find("its flight recorder is switched off"), std::string::npos) << told.err;
  EXPECT_EQ(std::ranges::count(told.err, '\n'), 1);
}

// ---- what it can't look into --------------------------------------------------------------------------------------------

TEST_F(attach, says_what_is_wrong) {
  const auto complaint = [](std::vector<std::string> words, int status) {
    const outcome told = weft_tool(std::move(words));
    EXPECT_EQ(told.status, status) << told.err;
    EXPECT_TRUE(told.out.empty());
    return told.err;
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != text.npos; };
  const pid_t other = ::fork();
  if (other == 0) {
    ::execlp("sleep", "sleep", "300", nullptr);
    ::_exit(127);
  }
  // Until that runs, it is this program, which uses weft.
  const std::string its_program = "/proc/" + std::to_string(other) + "/exe";
  for (const auto end = clock::now() + patience;
       clock::now() < end && fs::read_symlink(its_program) == fs::read_symlink("/proc/self/exe");)
    ::usleep(1000);
  for (const char* command : {"dump", "trace"})
    EXPECT_TRUE(has(complaint({command, std::to_string(other)}, 1), "nothing in it uses weft"));
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  for (const char* command : {"dump", "trace"})
    EXPECT_TRUE(has(complaint({command, "999999999"}, 1), "there is no process"));
  EXPECT_TRUE(has(complaint({"trace", WEFT_TOOL}, 1), "no core file"));
  EXPECT_TRUE(has(complaint({"trace", "/etc/passwd"}, 1), "it does not begin as one"));
  EXPECT_TRUE(has(complaint({"dump", "/nowhere/at/all"}, 1), "no such file"));
  EXPECT_TRUE(has(complaint({"dump", WEFT_TOOL}, 1), "no core file"));
  EXPECT_TRUE(has(complaint({"dump", "/etc/passwd"}, 1), "not an ELF file"));
  EXPECT_TRUE(has(complaint({"dump"}, 2), "which process"));
  EXPECT_TRUE(has(complaint({"dump", "1", "--sideways"}, 2), "no option --sideways"));
  EXPECT_TRUE(has(complaint({"top", "x"}, 2), "no process's number"));
  EXPECT_TRUE(has(complaint({"fly"}, 2), "no command fly"));
  EXPECT_TRUE(has(complaint({}, 2), "weft dump"));
}

// A program whose notes have another word in the place of one.
outcome look_with_other_notes(std::string_view word, std::string_view other, std::vector<std::string> words) {
  const temporary dir;
  const std::string program = dir.path / "other";
  std::string bytes = bytes_of(ATTACH_TARGET);
  std::size_t found = 0;
  for (std::size_t at = 0; (at = bytes.find(word, at)) != bytes.npos; ++found) bytes.replace(at, word.size(), other);
  EXPECT_GT(found, 0U) << word;
  std::ofstream{program, std::ios::binary} << bytes;
  fs::permissions(program, fs::perms::owner_all);
  const looked_into one{program, {"traced", dir.path / "own"}};
  words.push_back(one.pid());
  return weft_tool(words);
}

TEST_F(attach, says_that_it_does_not_know_the_version_of_the_notes) {
  using namespace std::string_view_literals;
  for (const char* command : {"dump", "trace"}) {
    const outcome told = look_with_other_notes("weft_debug_v1\0"sv, "weft_debug_v7\0"sv, {command});
    EXPECT_EQ(told.status, 1);
    EXPECT_NE(told.err.find("its notes of weft are of version 7"), std::string::npos) << told.err;
  }
  const outcome lacks = look_with_other_notes("\0rings.bytes\0"sv, "\0rings.chars\0"sv, {"trace"});
  EXPECT_EQ(lacks.status, 1);
  EXPECT_NE(lacks.err.find("its weft says nothing of rings.bytes"), std::string::npos) << lacks.err;
}

// Another user's process; a test that runs as root becomes nobody for that.
TEST_F(attach, says_that_it_is_not_permitted) {
  if (::getuid() != 0) GTEST_SKIP() << "SKIPPED: only root has another user's process to look into";
  const looked_into one{ATTACH_TARGET, {"all"}};
  const outcome told =
      run({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", WEFT_TOOL, "dump", one.pid()});
  if (told.status == 127 || told.err.find("ermission denied") != told.err.npos) GTEST_SKIP() << "SKIPPED: " << told.err;
  EXPECT_EQ(told.status, 1);
  EXPECT_NE(told.err.find("not permitted"), std::string::npos) << told.err;
}

// A thread in vfork() can't be stopped until its child has another program or has ended.
TEST_F(attach, does_not_wait_for_a_thread_that_can_not_be_stopped) {
  int goes_on[2], said[2];
  ASSERT_EQ(::pipe2(goes_on, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(said, O_CLOEXEC), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    ::close(goes_on[1]);
    if (::vfork() == 0) {
      char end;
      static_cast<void>(::write(said[1], "x", 1) == ::read(goes_on[0], &end, 1));
      ::_exit(0);
    }
    ::_exit(7);
  }
  char ready;
  ASSERT_EQ(::read(said[0], &ready, 1), 1);
  const outcome told = run({WEFT_TOOL, "dump", std::to_string(other)});
  EXPECT_EQ(told.status, 1);
  EXPECT_NE(told.err.find("does not stop"), std::string::npos) << told.err;
  for (const int one : {goes_on[0], goes_on[1], said[0], said[1]}) ::close(one);
  int status = 0;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7) << "it goes on";
}

// A note that leads nowhere, and one of another size.
TEST_F(attach, says_that_notes_are_damaged) {
  std::ifstream in{ATTACH_TARGET, std::ios::binary};
  const std::string whole{std::istreambuf_iterator<char>{in}, {}};
  const std::string owner{"weft_debug_v1\0\0\0", 16};
  const auto damaged = [&](auto change) {
    const temporary dir;
    const std::string program = dir.path / "damaged";
    std::string bytes = whole;
    const std::size_t at = bytes.find(owner);
    if (at == bytes.npos) return std::string{"there is no note"};
    change(bytes, at);
    std::ofstream{program, std::ios::binary} << bytes;
    fs::permissions(program, fs::perms::owner_all);
    const looked_into one{program, {"all"}};
    const outcome told = weft_tool({"dump", one.pid()});
    EXPECT_EQ(told.status, 1) << told.out;
    return told.err;
  };
  const auto leads_nowhere = [](std::string& bytes, std::size_t at) { bytes.replace(at + 16, 8, 8, '\x7f'); };
  const auto is_too_small = [](std::string& bytes, std::size_t at) { bytes[at - 8] = 4; };
  EXPECT_NE(damaged(leads_nowhere).find("damaged"), std::string::npos);
  EXPECT_NE(damaged(is_too_small).find("damaged"), std::string::npos);
}

// ---- top ----------------------------------------------------------------------------------------------------------------

// A terminal of 30 rows of 120 columns, with `weft top` in it.
class terminal {
 public:
  explicit terminal(const std::string& pid) {
    winsize size{30, 120, 0, 0};
    child_ = ::forkpty(&side_, nullptr, nullptr, &size);
    if (child_ == 0) {
      ::execl(WEFT_TOOL, "weft", "top", pid.c_str(), nullptr);
      ::_exit(127);
    }
  }
  terminal(const terminal&) = delete;
  ~terminal() {
    ::close(side_);
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
  }

  void press(std::string_view keys) {
    EXPECT_EQ(::write(side_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }

  // Reads until what was drawn since the last call has that text.
  bool shows(std::string_view text) {
    for (const auto end = clock::now() + patience; clock::now() < end;) {
      pollfd in{side_, POLLIN, 0};
      if (::poll(&in, 1, 1000) <= 0) continue;
      char some[65536];
      const ssize_t got = ::read(side_, some, sizeof some);
      if (got <= 0) return false;
      seen_.append(some, static_cast<std::size_t>(got));
      const std::size_t last = seen_.rfind("\x1b[H");
      screen = last != seen_.npos ? seen_.substr(last) : seen_;
      if (seen_.find(text) == seen_.npos) continue;
      seen_.clear();
      return true;
    }
    return false;
  }

  void send(int signal) const { ::kill(child_, signal); }

  int end() {
    char some[65536];
    while (::read(side_, some, sizeof some) > 0) {
    }
    int status = 0;
    ::waitpid(std::exchange(child_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string screen;

 private:
  std::string seen_;
  pid_t child_ = -1;
  int side_ = -1;
};

TEST_F(attach, top_shows_groups_tasks_and_a_stack) {
  const looked_into one{ATTACH_TARGET, {"fibers", "50"}};
  terminal top{one.pid()};
  ASSERT_TRUE(top.shows("52 tasks: 0 running, 0 ready, 52 waiting")) << top.screen;
  ASSERT_TRUE(top.shows("     50  ")) << top.screen;
  top.press("g");
  ASSERT_TRUE(top.shows("by function, sorted by count")) << top.screen;
  top.press("s");
  ASSERT_TRUE(top.shows("by function, sorted by function")) << top.screen;
  top.press("ggss");
  ASSERT_TRUE(top.shows("by function and wait, sorted by count")) << top.screen;
  top.press("/event\r");
  ASSERT_TRUE(top.shows("filter event)")) << top.screen;
  top.press("\r");
  ASSERT_TRUE(top.shows("TASKS of ")) << top.screen;
  top.press("\x1b[B\r");
  ASSERT_TRUE(top.shows("STACK of fiber ")) << top.screen;
  ASSERT_TRUE(top.shows("#0 ")) << top.screen;
  top.press("p");
  ASSERT_TRUE(top.shows("; paused")) << top.screen;
  top.press("q");
  EXPECT_EQ(top.end(), 0);
}

TEST_F(attach, top_ends_with_the_process_and_gives_the_terminal_back) {
  looked_into one{ATTACH_TARGET, {"all"}};
  terminal top{one.pid()};
  ASSERT_TRUE(top.shows("DEADLOCK: ")) << top.screen;
  static_cast<void>(one.end());
  ASSERT_TRUE(top.shows("\x1b[?1049l")) << top.screen;
  EXPECT_EQ(top.end(), 1);
}

TEST_F(attach, top_gives_the_terminal_back_when_a_signal_ends_it) {
  const looked_into one{ATTACH_TARGET, {"all"}};
  for (const int signal : {SIGTERM, SIGQUIT, SIGBUS}) {
    terminal top{one.pid()};
    ASSERT_TRUE(top.shows("DEADLOCK: ")) << top.screen;
    top.send(signal);
    ASSERT_TRUE(top.shows("\x1b[?1049l")) << signal;
    EXPECT_EQ(top.end(), signal == SIGBUS ? -1 : 0);
  }
}

TEST_F(attach, top_shows_one_picture_without_a_terminal) {
  const looked_into one{ATTACH_TARGET, {"all"}};
  const outcome shown = weft_tool({"top", one.pid(), "--once"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_NE(shown.out.find("THREAD POOL"), std::string::npos);
  const outcome refused = weft_tool({"top", one.pid()});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("needs a terminal"), std::string::npos);
}

}  // namespace
