// A snapshot as JSON, read by another library's parser, as a graph, and as text.
#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>
#include <weft/observe.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>

#include "support/weft_test.hpp"

namespace {

using nlohmann::json;
using weft::scope;
using weft::snapshot;
using weft::task;

task<> takes(weft::mutex& first, weft::mutex& second, weft::latch& both) {
  const auto a = co_await first.lock();
  both.count_down();
  co_await both.wait();
  const auto b = co_await second.lock();
}

// Two that wait for each other, below a task.
snapshot of_deadlock() {
  weft::mutex one, other;
  weft::latch both{2};
  weft::stop_source stop;
  const auto all = [&](scope& s) -> task<> {
    s.fork(takes(one, other, both));
    s.fork(takes(other, one, both));
    co_return;
  };
  bool ended = false;
  auto work = [&]() -> task<> { co_await weft::with_scope(all); };
  start(work(), [&](weft::result<void>) { ended = true; }, stop.token());
  snapshot seen = weft::take_snapshot();
  stop.request_stop();
  EXPECT_TRUE(ended);
  return seen;
}

template <class Write>
std::string written(Write write) {
  std::ostringstream out;
  write(out);
  return std::move(out).str();
}

TEST(snapshot_text, json_is_read_by_another_parser) {
  const snapshot seen = of_deadlock();
  const std::string text = written([&](auto& out) { seen.json(out); });
  EXPECT_EQ(text.find('\n'), text.size() - 1) << "one line";
  const json all = json::parse(text);
  EXPECT_EQ(all["version"], 1);
  EXPECT_EQ(all["is_complete"], true);
  ASSERT_EQ(all["tasks"].size(), 3U);
  ASSERT_EQ(all["deadlocks"].size(), 1U);
  ASSERT_EQ(all["deadlocks"][0].size(), 2U);
  std::set<std::string> ids;
  for (const json& one : all["tasks"]) {
    ids.insert(one["id"]);
    EXPECT_EQ(one["state"], "waiting");
    ASSERT_EQ(one["waits"].size(), 1U);
  }
  EXPECT_EQ(ids.size(), 3U);
  for (const json& id : all["deadlocks"][0]) EXPECT_TRUE(ids.contains(id));
  EXPECT_EQ(all["tasks"][0]["kind"], "task");
  EXPECT_TRUE(all["tasks"][0]["parent"].is_null());
  for (const std::size_t i : {1U, 2U}) {
    const json& one = all["tasks"][i];
    EXPECT_EQ(one["kind"], "fork");
    EXPECT_EQ(one["parent"], all["tasks"][0]["id"]);
    EXPECT_EQ(one["waits"][0]["what"], "mutex");
    EXPECT_EQ(one["waits"][0]["holder"], all["tasks"][3 - i]["id"]);
    EXPECT_NE(one["function"].get<std::string>().find("takes"), std::string::npos);
    EXPECT_FALSE(one["stack"].empty());
  }
  EXPECT_FALSE(all["workers"].empty());
}

TEST(snapshot_text, json_escapes_whatever_a_name_has) {
  const std::vector<std::pair<const char*, const char*>> names{
      {"a \"quoted\" one", "a \"quoted\" one"},
      {"back\\slash", "back\\slash"},
      {"line\nand\ttab\x01\x1f", "line\nand\ttab\x01\x1f"},
      {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"bad \xff\xc3", "bad \xef\xbf\xbd\xef\xbf\xbd"},
      {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},  // a surrogate
      {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                  // longer than it need be
      {"</script>", "</script>"},
  };
  for (const auto& [name, read] : names) {
    snapshot seen;
    seen.tasks = weft::items<weft::task_info>{1};
    seen.tasks[0].waits = weft::items<weft::task_wait>{1};
    seen.tasks[0].waits[0].what = name;
    seen.tasks[0].cause = weft::stop_cause{.reason = name};
    const json all = json::parse(written([&](auto& out) { seen.json(out); }));
    EXPECT_EQ(all["tasks"][0]["waits"][0]["what"], read);
    EXPECT_EQ(all["tasks"][0]["cause"]["reason"], read);
    EXPECT_TRUE(all["tasks"][0]["id"].is_null());
  }
}

// Outside of quotes a graph has only braces, names, brackets and arrows; each node that an edge leads to was declared.
TEST(snapshot_text, dot_is_a_graph) {
  const snapshot seen = of_deadlock();
  const std::string text = written([&](auto& out) { seen.dot(out); });
  EXPECT_TRUE(text.starts_with("digraph weft {\n"));
  EXPECT_TRUE(text.ends_with("}\n"));
  std::set<std::string> nodes;
  std::size_t edges = 0, red = 0, dotted = 0;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ((std::size_t{0} + static_cast<std::size_t>(std::count(line.begin(), line.end(), '"'))) % 2, 0U) << line;
    if (!line.starts_with("  \"")) continue;
    EXPECT_TRUE(line.ends_with("];")) << line;
    const std::string first = line.substr(3, line.find('"', 3) - 3);
    if (const std::size_t arrow = line.find("\" -> \""); arrow != std::string::npos) {
      ++edges;
      const std::string second = line.substr(arrow + 6, line.find('"', arrow + 6) - arrow - 6);
      EXPECT_TRUE(nodes.contains(first) && nodes.contains(second)) << line;
      red += line.find("color=red") != std::string::npos ? 1 : 0;
      dotted += line.find("style=dotted") != std::string::npos ? 1 : 0;
    } else {
      EXPECT_TRUE(nodes.insert(first).second) << line;
    }
  }
  EXPECT_EQ(nodes.size(), 3U);
  EXPECT_EQ(dotted, 2U) << "who stands below whom";
  EXPECT_EQ(red, 2U) << "who waits for whom in the circle";
  EXPECT_EQ(edges, 4U);
}

TEST(snapshot_text, text_begins_with_what_is_wrong) {
  const snapshot seen = of_deadlock();
  const std::string text = written([&](auto& out) { seen.text(out); });
  const std::string takes = "(anonymous namespace)::takes(";
  EXPECT_TRUE(text.starts_with("DEADLOCK: " + takes + "weft::mutex&, weft::mutex&, weft::latch&) (0x")) << text;
  EXPECT_NE(text.find(" waits for mutex 0x"), std::string::npos) << text;
  EXPECT_NE(text.find(", held by " + takes), std::string::npos) << text;
  EXPECT_NE(text.find("3 tasks: 0 running, 0 ready, 3 waiting"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  fork " + takes), std::string::npos) << "below its parent\n" << text;
  EXPECT_EQ(text.find("weft::detail::"), std::string::npos) << text;
  const std::string only = written([&](auto& out) { seen.deadlocks_text(out); });
  EXPECT_EQ(only, text.substr(0, text.find("3 tasks: "))) << "the former alone";
  ASSERT_EQ(seen.deadlocks().size(), 1);
  EXPECT_EQ(written([&](auto& out) { seen.deadlock_text(seen.deadlocks()[0], out); }), only);
}

}  // namespace
