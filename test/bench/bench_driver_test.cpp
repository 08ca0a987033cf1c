// The bench driver when things go wrong: it must fail loudly, and never show a figure that nobody measured. The
// programs here are shell scripts that print what a benchmark program prints.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "../../bench/harness/driver.hpp"
#include "../../bench/harness/harness.hpp"
#include "../../bench/harness/measure.hpp"
#include "../../bench/harness/process.hpp"
#include "../../bench/harness/table.hpp"

namespace {

using namespace std::chrono_literals;
using bench::entry;
using bench::json;

/// A folder with a manifest and the sources' data files, gone at the end.
class driver : public testing::Test {
 protected:
  driver() {
    std::filesystem::create_directories(folder_ / "source/report");
    for (const auto* part : {"page.html", "page.css", "page.js"})
      std::filesystem::copy(sources / "report" / part, folder_ / "source/report");
    std::filesystem::copy(sources / "report/published", folder_ / "source/report/published");
    manifest_ = {{"source", (folder_ / "source").string()},
                 {"compiler", "clang"},
                 {"build", {{"compiler", "Clang"}, {"flags", "-O3"}}},
                 {"libraries", json::object()},
                 {"programs", json::array()}};
  }
  ~driver() override { std::filesystem::remove_all(folder_); }

  void library(const std::string& id, bool found) {
    manifest_["libraries"][id] = {{"name", id}, {"version", "1"}, {"option", "-DX_ROOT="}, {"found", found}};
  }
  void program(const std::string& workload, const std::string& id, const std::string& script) {
    library(id, true);
    manifest_["programs"].push_back(
        {{"workload", workload}, {"library", id}, {"command", {"/bin/sh", "-c", script, "program"}}});
  }

  /// Runs the whole driver.
  int run(std::vector<std::string> options) {
    write("manifest.json", manifest_.dump());
    std::vector<std::string> all{"weft-bench", "--manifest", path("manifest.json")};
    all.insert(all.end(), options.begin(), options.end());
    std::vector<const char*> argv;
    for (const auto& each : all) argv.push_back(each.c_str());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int status = bench::run_driver(static_cast<int>(argv.size()), argv.data());
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return status;
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const { std::ofstream{folder_ / name} << text; }
  json results() const {
    std::ifstream in{folder_ / "weft-bench.json"};
    return json::parse(in);
  }
  bool said(const std::string& text) const {
    return out_.find(text) != std::string::npos || err_.find(text) != std::string::npos;
  }

  static std::string prints(double ns) {
    return "echo '{\"ns\":" + std::to_string(ns) + ",\"peak_rss_kib\":4000,\"start_rss_kib\":3000,\"extra\":{}}'";
  }

  static inline const std::filesystem::path sources = BENCH_SOURCES;
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("weft-bench-test-" + std::to_string(::getpid()));
  json manifest_;
  std::string out_, err_;
};

TEST_F(driver, measures_and_divides) {
  program("chain", "weft", prints(8));
  program("chain", "cppcoro", prints(12));
  ASSERT_EQ(run({"chain", "--rounds", "5", "--minutes", "0.01"}), 0) << out_ << err_;
  const auto row = results()["rows"][0];
  EXPECT_EQ(row["results"][1]["ratio"]["value"], 1.5);
  EXPECT_EQ(row["results"][1]["rounds"].size(), 5U);
  EXPECT_TRUE(said("1.50 × [1.50 … 1.50]")) << out_;
  std::ifstream page{path("weft-bench.html")};
  std::stringstream text;
  text << page.rdbuf();
  EXPECT_NE(text.str().find("\"ratio\":{\"value\":1.5"), std::string::npos);
  EXPECT_EQ(text.str().find("http"), std::string::npos) << "the page must need nothing from outside";
}

TEST_F(driver, turns_the_order_round_in_every_second_round) {
  const auto tells = [&](const char* name) { return "echo -n " + std::string{name} + " >>" + path("order") + "; "; };
  program("chain", "weft", tells("w") + prints(8));
  program("chain", "cppcoro", tells("c") + prints(12));
  program("fib", "weft", tells("f") + prints(12));
  ASSERT_EQ(run({"chain", "fib", "--rounds", "3", "--minutes", "0.01"}), 0) << out_ << err_;
  std::ifstream in{path("order")};
  std::string order;
  in >> order;
  order.erase(std::unique(order.begin(), order.end()), order.end());  // some run several times a round
  EXPECT_TRUE(order == "wcfcwcf" || order == "cwfwcwf") << order;
}

TEST_F(driver, shows_processor_time_where_there_are_threads) {
  const auto prints_both = [](int ns, int cpu_ns) {
    const json line = {
        {"ns", ns}, {"cpu_ns", cpu_ns}, {"peak_rss_kib", 1}, {"start_rss_kib", 1}, {"extra", json::object()}};
    return "echo '" + line.dump() + "'";
  };
  for (const char* workload : {"fib", "chain"}) {
    program(workload, "weft", prints_both(30, 59));
    program(workload, "tokio", prints(30));  // does not say
  }
  ASSERT_EQ(run({"fib", "chain", "--rounds", "5", "--minutes", "0.01"}), 0) << out_ << err_;
  EXPECT_TRUE(said("× weft                        CPU   memory")) << out_;
  EXPECT_TRUE(said("1                            59.0    1 KiB")) << out_;
  EXPECT_TRUE(said("1.00 × [1.00 … 1.00]              4000 KiB")) << out_;
  EXPECT_TRUE(said("× weft                     memory")) << out_;  // chain: one thread, so it would be the time again
  for (const auto& row : results()["rows"]) {
    EXPECT_EQ(row["shows_cpu"], row["workload"] == "fib");
    EXPECT_EQ(row["results"][0]["cpu"]["value"], 59);
    EXPECT_FALSE(row["results"][1].contains("cpu"));
  }
}

TEST_F(driver, shows_what_a_program_reported_besides) {
  const auto slow_ones = [](const char* own) {  // each round another figure: 1, 2, … 5
    return std::string{"n=$(cat "} + own + " 2>/dev/null || echo 0); n=$((n + 1)); echo $n >" + own +
           R"(; echo "{\"ns\":1000,\"peak_rss_kib\":1,\"start_rss_kib\":1,)" +
           R"(\"extra\":{\"p50 us\":$n,\"p99 us\":${n}00,\"cpu us in 10 s idle\":0}}")";
  };
  program("idle", "weft", slow_ones(path("rounds-$2").c_str()));
  ASSERT_EQ(run({"idle", "--rounds", "5", "--minutes", "0.01"}), 0) << out_ << err_;
  EXPECT_TRUE(said("\n    cpu us in 10 s idle 0, p50 us 3.00, p99 us 300\n")) << out_;
  EXPECT_EQ(results()["rows"][0]["results"][0]["extra"]["p99 us"], 300);
}

TEST(table, breaks_what_was_reported_besides_where_a_line_ends) {
  bench::run_record run;
  run.rows.push_back({.work = bench::find_workload("idle"), .form = {}, .entries = {{.library = "weft"}}});
  auto& e = run.rows[0].entries[0];
  e.state = entry::status::measured;
  e.rounds = {1};
  for (char c = 'a'; c != 'i'; ++c) e.extra_rounds[std::string(12, c)] = {1};
  bench::evaluate(run);
  bench::manifest built;
  built.libraries.push_back({"weft", "weft", "1", "", true});
  std::ostringstream out;
  bench::print_table(out, run, built);
  std::istringstream lines{out.str()};
  std::size_t besides = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("    ") || line.find("1.00") == std::string::npos) continue;
    ++besides;
    EXPECT_LE(bench::columns(line), 100U) << line;
  }
  EXPECT_EQ(besides, 2U) << out.str();
}

TEST_F(driver, records_what_it_ran_on) {
  program("chain", "weft",
          "echo '{\"ns\":8,\"peak_rss_kib\":1,\"start_rss_kib\":1,\"allocator\":\"tcmalloc\",\"extra\":{}}'");
  program("chain", "cppcoro", prints(12));  // does not say
  ASSERT_EQ(run({"chain", "--rounds", "5", "--minutes", "0.01"}), 0) << out_ << err_;
  const auto all = results();
  EXPECT_EQ(all["rows"][0]["results"][0]["allocator"], "tcmalloc");
  EXPECT_EQ(all["machine"]["allocator"], "tcmalloc");
  for (const char* fact : {"cores", "memory", "kernel", "libc", "load"})
    EXPECT_TRUE(all["machine"].contains(fact)) << fact;
}

TEST_F(driver, pins_only_what_has_one_thread_that_works) {
  program("fib", "weft", "printf '{\"ns\":%d,\"peak_rss_kib\":1,\"start_rss_kib\":1,\"extra\":{}}' $(nproc)");
  ASSERT_EQ(run({"fib", "--rounds", "5", "--minutes", "0.01"}), 0) << out_ << err_;
  const auto cores = std::stod(bench::run_process({"nproc"}).out);
  EXPECT_EQ(results()["rows"][0]["results"][0]["figure"]["value"], 1);
  EXPECT_EQ(results()["rows"][1]["results"][0]["figure"]["value"], cores);
}

TEST_F(driver, wrong_result_fails_with_a_sentence) {
  program("chain", "weft", "echo 'the result is not the expected one' >&2; exit 1");
  EXPECT_EQ(run({"--smoke"}), 1);
  EXPECT_TRUE(said("chain, weft: ended with status 1: the result is not the expected one")) << out_ << err_;
  EXPECT_EQ(results()["rows"][0]["results"][0]["status"], "failed");
}

TEST_F(driver, crash_fails_and_the_others_still_count) {
  program("chain", "weft", prints(8));
  program("chain", "cppcoro", "kill -SEGV $$");
  EXPECT_EQ(run({"chain", "--rounds", "5", "--minutes", "0.01"}), 1);
  EXPECT_TRUE(said("was killed by SIGSEGV")) << out_;
  EXPECT_EQ(results()["rows"][0]["results"][0]["status"], "measured");
}

TEST_F(driver, hanging_program_is_killed) {
  program("chain", "weft", "sleep 600 & sleep 600");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run({"--smoke", "--limit", "1"}), 1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 300s);
  EXPECT_TRUE(said("chain, weft: took longer than ")) << out_;  // says how long it took
  EXPECT_TRUE(said(" s and was killed")) << out_;
}

TEST_F(driver, silence_and_nonsense_are_failures) {
  program("chain", "weft", "true");
  program("collect_all", "weft", "echo hello");
  program("generator", "weft", "echo '{}'");
  EXPECT_EQ(run({"--smoke"}), 1);
  EXPECT_TRUE(said("chain, weft: printed no result")) << out_;
  EXPECT_TRUE(said("collect_all, weft: ")) << out_;
  EXPECT_TRUE(said("generator, weft: ")) << out_;
}

TEST_F(driver, missing_program_is_a_failure) {
  library("weft", true);
  manifest_["programs"].push_back({{"workload", "chain"}, {"library", "weft"}, {"command", {"/nowhere/bench"}}});
  EXPECT_EQ(run({"--smoke"}), 1);
  EXPECT_TRUE(said("cannot run /nowhere/bench")) << out_;
}

TEST_F(driver, program_that_may_be_missing_makes_its_library_absent) {
  program("chain", "weft", prints(8));
  program("chain", "tokio", prints(9));
  manifest_["programs"].back()["command"] = {"/nowhere/bench"};
  manifest_["programs"].back()["optional"] = true;
  EXPECT_EQ(run({"chain", "--rounds", "5", "--minutes", "0.01"}), 0) << out_ << err_;
  EXPECT_TRUE(said("tokio is not here: install it, or configure with -DX_ROOT=/its/prefix")) << out_;
}

TEST_F(driver, missing_server_leaves_the_library_out_though_its_client_is_there) {
  program("tcp_pingpong", "weft", prints(8));
  program("tcp_pingpong", "tokio", prints(9));
  manifest_["programs"].back()["command"] = {"/bin/sh", "--server", "/nowhere/bench"};
  manifest_["programs"].back()["optional"] = true;
  EXPECT_EQ(run({"tcp_pingpong", "20", "--rounds", "5", "--minutes", "0.01"}), 0) << out_ << err_;
  EXPECT_TRUE(said("tokio is not here: install it, or configure with -DX_ROOT=/its/prefix")) << out_;
}

TEST_F(driver, missing_variant_of_a_library_leaves_the_library_there) {
  program("chain", "weft", prints(8));
  program("chain", "go", prints(9));
  program("chain", "go", prints(9));
  auto& missing = manifest_["programs"].back();
  missing["variant"] = "errgroup";
  missing["command"] = {"/nowhere/bench"};
  missing["optional"] = true;
  EXPECT_EQ(run({"chain", "--rounds", "5", "--minutes", "0.01"}), 0) << out_ << err_;
  EXPECT_FALSE(said("go is not here")) << out_;
  EXPECT_EQ(results()["rows"][0]["results"][1]["status"], "measured");
}

TEST_F(driver, absent_peer_shows_what_was_recorded) {
  program("chain", "weft", prints(8));
  library("folly", false);
  write("source/recorded.json",
        R"({"clang": {"chain": {"folly": {"ratio": 6.3, "low": 6.1, "high": 6.5, "coverage": 0.96,
            "date": "2026-11-21", "machine": "a Xeon"}}}})");
  EXPECT_EQ(run({"chain", "--rounds", "5", "--minutes", "0.01"}), 0) << out_;
  EXPECT_TRUE(said("6.30 × [6.10 … 6.50]")) << out_;
  EXPECT_TRUE(said("not measured in this run; recorded 2026-11-21, a Xeon")) << out_;
  EXPECT_TRUE(said("folly is not here: install it, or configure with -DX_ROOT=/its/prefix")) << out_;
  EXPECT_EQ(results()["rows"][0]["results"][1]["status"], "recorded");
}

TEST_F(driver, records_ratios_for_those_who_lack_a_peer) {
  program("chain", "weft", prints(8));
  program("chain", "cppcoro", prints(12));
  ASSERT_EQ(run({"chain", "--rounds", "5", "--minutes", "0.01", "--record"}), 0) << out_;
  std::ifstream in{path("source/recorded.json")};
  EXPECT_EQ(json::parse(in)["clang"]["chain"]["cppcoro"]["ratio"], 1.5);
}

TEST_F(driver, compares_with_an_earlier_run) {
  program("chain", "weft", prints(8));
  ASSERT_EQ(run({"chain", "--rounds", "5", "--minutes", "0.01", "--json", path("then.json")}), 0);
  manifest_["programs"].clear();
  program("chain", "weft", prints(12));
  ASSERT_EQ(run({"chain", "--rounds", "5", "--minutes", "0.01", "--compare", path("then.json")}), 0);
  EXPECT_TRUE(said("1.50 × [1.50 … 1.50]")) << out_;
  EXPECT_TRUE(said("slower")) << out_;
}

TEST_F(driver, prints_a_published_table) {
  program("chain", "weft", prints(8));
  program("chain", "async_simple", prints(40));
  ASSERT_EQ(run({"--report", "async_simple", "--rounds", "5", "--minutes", "0.01"}), 0) << out_ << err_;
  EXPECT_TRUE(said("async_simple_Lazy_chain")) << out_;
  EXPECT_TRUE(said("59745 ns")) << out_;  // published
  EXPECT_TRUE(said("40000 ns")) << out_;  // here
  EXPECT_TRUE(said("8000 ns")) << out_;   // weft
}

TEST_F(driver, prints_the_phases_of_a_program) {
  const auto goroutines = [](double ns, double create) {
    const auto line = [&](json extra) {
      extra.update({{"create ns", create}, {"start ns", 70}, {"close ns", 80}});
      return json{{"ns", ns}, {"peak_rss_kib", 2048}, {"start_rss_kib", 512}, {"extra", extra}}.dump();
    };
    return "case \"$*\" in *--full*1*) echo '" + line({{"switches of each", 1000}}) + "';; *) echo '" +
           line(json::object()) + "';; esac";
  };
  program("goroutine", "weft", goroutines(160, 50));
  program("goroutine", "go", goroutines(800, 60));
  ASSERT_EQ(run({"--report", "goroutine", "--minutes", "1"}), 0) << out_ << err_;  // time for more rounds than five
  EXPECT_TRUE(said("create  start  switch  close  rounds  peak memory")) << out_;
  EXPECT_TRUE(said("weft      50 ns  70 ns  160 ns  80 ns       5")) << out_;
  EXPECT_TRUE(said("go        60 ns  70 ns  800 ns  80 ns       5")) << out_;
  EXPECT_FALSE(said("switched to")) << out_;
  ASSERT_EQ(run({"--report", "goroutine", "--full"}), 0) << out_ << err_;
  EXPECT_TRUE(said("go        60 ns  70 ns  800 ns  80 ns       5")) << out_;
  EXPECT_TRUE(said("here each was switched to 1000 times")) << out_;
}

TEST_F(driver, prints_programs_of_several_sizes_and_their_length) {
  const auto switched = [](int in_full) {  // to each so often
    return "case \"$*\" in *--full*1*) of=" + std::to_string(in_full) +
           R"(;; *) of=100;; esac; echo "{\"ns\":$2,\"peak_rss_kib\":2048,\"start_rss_kib\":512,)" +
           R"(\"extra\":{\"create ns\":7,\"remove ns\":8,\"switches of each\":$of}}")";
  };
  program("switch_30k", "weft", switched(1000));
  ASSERT_EQ(run({"--report", "libcopp", "--minutes", "0.01"}), 0) << out_ << err_;
  EXPECT_TRUE(said("10000 1000 200          create    switch  remove  rounds  peak memory")) << out_;
  EXPECT_TRUE(said("libcopp, as published  5000 ns    370 ns  900 ns       1            –")) << out_;
  EXPECT_TRUE(said("weft                      7 ns  10000 ns    8 ns       5")) << out_;
  EXPECT_TRUE(said("weft             7 ns  30000 ns    8 ns       5")) << out_;
  EXPECT_TRUE(said("here each was switched to 100 times")) << out_;
  ASSERT_EQ(run({"--report", "libcopp", "--full", "--minutes", "0.01"}), 0) << out_ << err_;
  EXPECT_TRUE(said("here each was switched to 1000 times")) << out_;
}

TEST_F(driver, takes_one_shape_by_its_name) {
  program("switch", "weft", prints(2));
  ASSERT_EQ(run({"switch_hot", "--rounds", "1"}), 0) << out_ << err_;
  ASSERT_EQ(results()["rows"].size(), 1U);
  EXPECT_EQ(results()["rows"][0]["size"], 2);
  EXPECT_TRUE(said("switch, 2 (hot)")) << out_;
  EXPECT_EQ(run({"switch_hot", "1000"}), 2);
  EXPECT_TRUE(said("'switch_hot' has its size, and takes no numbers")) << err_;
  ASSERT_EQ(run({"--list"}), 0);
  EXPECT_TRUE(said("switch_hot      switch, 2 (hot)")) << out_;
  EXPECT_TRUE(said("switch_30k N SWITCHES KIB")) << out_;
}

TEST_F(driver, gives_programs_the_numbers_that_come_after_a_name) {
  const std::string told =
      R"(case "$*" in "--size 3000 "*" --switches 10 --kib 8") ns=5;; *--kib*) ns=7;; *) ns=9;; esac; )"
      R"(echo "{\"ns\":$ns,\"peak_rss_kib\":1,\"start_rss_kib\":1,\"extra\":{}}")";
  program("switch_30k", "weft", told);
  program("switch", "weft", told);
  ASSERT_EQ(run({"switch_30k", "3000", "10", "8", "switch", "5", "switch_30k", "30000", "--rounds", "1"}), 0)
      << out_ << err_;
  const json rows = results()["rows"];
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0]["title"], "switch, 5");
  EXPECT_EQ(rows[1]["title"], "switch_30k, 3000 10 8");
  EXPECT_EQ(rows[1]["size"], 3000);
  EXPECT_EQ(rows[1]["results"][0]["rounds"][0], 5);
  EXPECT_EQ(rows[2]["title"], "switch_30k, 30 k, 64 KiB");  // as the catalogue has it
  EXPECT_EQ(rows[2]["results"][0]["rounds"][0], 9);
  EXPECT_EQ(run({"switch", "5", "6"}), 2);
  EXPECT_TRUE(said("too many numbers: it is 'switch N'")) << err_;
  EXPECT_EQ(run({"5"}), 2);
  EXPECT_TRUE(said("there is no workload '5'")) << err_;
}

TEST_F(driver, refuses_servers_of_more_threads_than_make_sense) {
  program("http_hello", "weft", prints(8));
  EXPECT_EQ(run({"http_hello", "2", "--rounds", "1"}), 0) << out_ << err_;
  for (const char* const threads : {"0", "1000000"}) {
    EXPECT_EQ(run({"http_hello", threads, "--rounds", "1"}), 2);
    EXPECT_TRUE(said("'http_hello' takes how many threads a server has")) << err_;
  }
}

TEST_F(driver, prints_how_a_program_scales) {
  const auto on = [](const char* one, const char* two) {  // nanoseconds, on one thread and on more
    return std::string{"[ $(( $2 % 1000 )) = 1 ] && ns="} + one + " || ns=" + two +
           R"(; echo "{\"ns\":$ns,\"peak_rss_kib\":1,\"start_rss_kib\":1,\"extra\":{}}")";
  };
  program("switch_mt", "weft", on("16", "8"));
  program("switch_mt", "lionet", on("700", "1400"));
  program("fiber_create_mt", "weft", on("50", "100"));
  ASSERT_EQ(run({"--report", "lionet", "--minutes", "0.01"}), 0) << out_ << err_;
  EXPECT_TRUE(said("LioNet, as published        3000       16  1252 ns             98.2 ns      0.58       3")) << out_;
  EXPECT_TRUE(said("weft                        1000        1  16.0 ns                0 ns      1.00       3")) << out_;
  EXPECT_TRUE(said("weft                        3000       16  8.00 ns                0 ns      2.00       3")) << out_;
  EXPECT_TRUE(said("lionet                      3000        2  1400 ns                0 ns      0.50       3")) << out_;
  EXPECT_TRUE(said("fiber_create_mt       coroutines  threads     mean  standard deviation  speed-up  rounds")) << out_;
  EXPECT_TRUE(said("LioNet, as published        3000        4  3733 ns             87.6 ns      1.00       3")) << out_;
  EXPECT_TRUE(said("none of them runs. Here each is made, yields once and ends.")) << out_;
  EXPECT_TRUE(said("weft                        1000        4   100 ns                0 ns      0.50       3")) << out_;
  EXPECT_TRUE(said("weft                        3000        1  50.0 ns                0 ns      1.00       3")) << out_;
}

TEST_F(driver, smoke_takes_two_sizes_of_a_workload) {
  program("switch", "weft", prints(2));
  ASSERT_EQ(run({"--smoke"}), 0) << out_ << err_;
  EXPECT_EQ(results()["rows"].size(), 2U);
  ASSERT_EQ(run({"switch", "--rounds", "1"}), 0) << out_ << err_;
  EXPECT_EQ(results()["rows"].size(), 3U);
}

TEST_F(driver, smoke_takes_one_peer_and_quick_says_what_it_left_out) {
  for (const auto* id : {"weft", "async_simple", "cppcoro"}) program("chain", id, prints(8));
  program("generator", "weft", prints(2));
  manifest_["programs"].push_back({{"workload", "chain"},
                                   {"library", "weft"},
                                   {"variant", "pic"},
                                   {"smoke", false},
                                   {"command", {"/nowhere/bench"}}});
  ASSERT_EQ(run({"--smoke"}), 0) << out_ << err_;
  EXPECT_EQ(results()["rows"].size(), 2U);
  EXPECT_EQ(results()["rows"][0]["results"].size(), 2U);
  manifest_["programs"].erase(manifest_["programs"].size() - 1);
  ASSERT_EQ(run({"--rounds", "1"}), 0) << out_ << err_;
  EXPECT_EQ(results()["rows"].size(), 1U);
  EXPECT_TRUE(said("Left out: generator")) << out_;
}

TEST_F(driver, tells_all_programs_of_a_paced_workload_half_of_what_the_limit_can_do) {
  const auto at_rest = [](int ns) {  // told no rate
    return "case \"$*\" in *--rate*) echo \"$*\" | sed 's/.*--rate //' >>" + std::string{"RATES"} + "; " + prints(8) +
           ";; *) echo '{\"ns\":1,\"peak_rss_kib\":1,\"start_rss_kib\":1,\"extra\":{\"ns that passed\":" +
           std::to_string(ns) + "}}';; esac";
  };
  const auto writing = [&](std::string script, const std::string& name) {
    return script.replace(script.find("RATES"), 5, path(name));
  };
  program("tcp_pingpong_open", "weft", writing(at_rest(1), "rates"));
  program("tcp_pingpong_open", "handwritten", writing(at_rest(10'000), "rates"));
  ASSERT_EQ(run({"tcp_pingpong_open", "20", "--rounds", "2"}), 0) << out_ << err_;
  std::ifstream in{path("rates")};
  std::vector<long> rates;
  for (long rate = 0; in >> rate;) rates.push_back(rate);
  EXPECT_EQ(rates, (std::vector<long>{50'000, 50'000, 50'000, 50'000}));  // half of a request every 10 us

  ASSERT_EQ(run({"tcp_pingpong_open", "20", "700", "--rounds", "1"}), 0) << out_ << err_;
  std::ifstream again{path("rates")};
  std::string text{std::istreambuf_iterator<char>{again}, {}};
  EXPECT_TRUE(text.ends_with("700\n700\n")) << "one's own rate: " << text;
}

TEST_F(driver, says_which_rate_could_not_be_found) {
  program("tcp_pingpong_open", "weft", prints(8));
  program("tcp_pingpong_open", "handwritten", "echo no epoll >&2; exit 3");
  EXPECT_EQ(run({"tcp_pingpong_open", "20", "--rounds", "1"}), 1);
  EXPECT_TRUE(said("has no rate, as handwritten failed: ended with status 3: no epoll")) << out_ << err_;
}

TEST_F(driver, leaves_out_what_this_machine_cannot_run) {
  program("chain", "weft", prints(8));
  program("chain", "cppcoro", "echo '{\"not here\":\"it takes more descriptors\"}'");
  ASSERT_EQ(run({"chain", "--rounds", "2"}), 0) << out_ << err_;
  EXPECT_TRUE(said("left out: it takes more descriptors")) << out_;
  const auto other = results()["rows"][0]["results"][1];
  EXPECT_EQ(other["status"], "not here");
  EXPECT_FALSE(other.contains("figure"));
}

TEST_F(driver, names_that_do_not_exist_are_refused) {
  program("chain", "weft", prints(8));
  EXPECT_EQ(run({"chian"}), 2);
  EXPECT_TRUE(said("there is no workload 'chian'; the bench knows chain, ")) << err_;
  EXPECT_EQ(run({"chain", "--with", "bosst"}), 2);
  EXPECT_TRUE(said("there is no library 'bosst'")) << err_;
  EXPECT_EQ(run({"--report", "nobody"}), 2);
  EXPECT_EQ(run({"--compare", path("none.json")}), 2);
  EXPECT_EQ(run({"--quick", "--full"}), 2);
}

TEST_F(driver, help_names_the_options_of_a_program) {
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_TRUE(said("[--full 0|1] [--OPTION N]")) << out_;
}

TEST(row, has_ratios_to_weft_without_a_variant_where_it_is_there) {
  bench::row row;
  row.entries = {{.library = "go"}, {.library = "weft", .variant = "cold"}};
  EXPECT_EQ(row.base(), &row.entries[1]);
  row.entries.push_back({.library = "weft"});
  EXPECT_EQ(row.base(), &row.entries[2]);
  row.entries.push_back({.library = "weft", .variant = "fibers"});
  EXPECT_EQ(row.base(), &row.entries[2]);
}

TEST(harness, checks_every_result) {
  bench::state good{0, 1ms, 5ms};
  good.measure(1, 42, [] { return 42; });
  EXPECT_GT(json::parse(good.to_json())["ns"], 0.0);

  bench::state bad{0, 1ms, 5ms};
  int calls = 0;
  const auto all = [&] {
    while (calls < 4)
      bad.measure(1, 42, [&] { return ++calls != 4 ? 42 : 41; });  // again, after a first call that is long
  };
  EXPECT_THROW(all(), bench::wrong_result);
}

TEST(harness, knows_which_options_nobody_asked_for) {
  bench::state round{0, 1ms, 5ms, false, {{"--kib", 64}, {"--kbi", 65}}};
  EXPECT_EQ(round.option("--kib", 2048), 64U);
  EXPECT_EQ(round.option("--kib", 2048), 64U);
  EXPECT_EQ(round.option("--switches", 100), 100U);
  EXPECT_EQ(round.unknown_option(), "--kbi");
  EXPECT_EQ(round.option("--kbi", 0), 65U);
  EXPECT_EQ(round.unknown_option(), "");
}

TEST(harness, times_what_it_should) {
  bench::state round{0, 1ms, 40ms};
  const auto start = std::chrono::steady_clock::now();
  round.measure(10, 0, [] {
    const auto end = std::chrono::steady_clock::now() + 1ms;
    while (std::chrono::steady_clock::now() < end) {
    }
    return 0;
  });
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  const auto line = json::parse(round.to_json());
  const double ns = line["ns"], items = line["items"];
  EXPECT_GT(ns, 0.99e5);                    // 1 ms for 10 items
  EXPECT_LT(ns * items / 2, took.count());  // half of the calls, or more, took the median or longer
}

TEST(harness, a_call_may_do_a_part_of_an_item) {
  bench::state round{0, 1ms, 40ms};
  round.measure(0.01, 0, [] { return std::this_thread::sleep_for(1ms), 0; });
  const auto line = json::parse(round.to_json());
  EXPECT_GT(line["ns"], 0.99e8);  // a hundred times 1 ms
  EXPECT_LT(line["items"], 1);
}

TEST(harness, times_a_program_of_given_length_once) {
  bench::state round{30, 1ms, 40ms};
  int calls = 0;
  round.measure_once(10, 42, [&] { return ++calls, 42; });
  EXPECT_EQ(calls, 1);
  const auto line = json::parse(round.to_json());
  EXPECT_EQ(line["batches"], 1);
  EXPECT_EQ(line["items"], 10);

  bench::state bad{0, 1ms, 40ms};
  EXPECT_THROW(bad.measure_once(10, 42, [] { return 41; }), bench::wrong_result);
}

TEST(catalogue, has_every_contention_from_one_to_sixty_four) {
  for (const auto* name : {"mutex", "shared_mutex"}) {
    std::vector<std::size_t> sizes;
    for (const auto& form : bench::find_workload(name)->shapes) sizes.push_back(form.size);
    EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 2, 4, 8, 16, 32, 64})) << name;
  }
}

TEST(catalogue, tells_programs_with_a_length_of_their_own_of_a_full_run) {
  for (const auto& work : bench::catalogue())
    EXPECT_EQ(work.longer_in_full, work.name.starts_with("switch_30k") || work.name == "goroutine") << work.name;
}

TEST(process, catches_both_outputs_and_pins) {
  const auto result = bench::run_process({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}, {.cpu = 0});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.err, "err\n");
  EXPECT_THROW((void)bench::run_process({"/nowhere/program"}), std::system_error);
}

}  // namespace
