#include "driver.hpp"

#include "environment.hpp"
#include "html.hpp"
#include "measure.hpp"
#include "table.hpp"

#include <CLI/CLI.hpp>

#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>

namespace bench {
namespace {

struct arguments {
  std::vector<std::string> workloads;
  std::vector<std::string> with;
  bool quick = false, full = false, smoke = false, list = false, record = false;
  double minutes = 0;
  std::size_t rounds = 0;
  unsigned limit = 0;
  std::string report, compare, json_file, html_file;
  std::string manifest_file;
};

std::filesystem::path own_folder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }

void define(CLI::App& app, arguments& args) {
  app.set_help_flag("-h,--help", "Print this and exit");
  app.add_option(
      "workloads", args.workloads,
      "What to measure (see --list); all of it by default. Numbers after a name take the place of its sizes, "
      "and tell its programs more where they take more: switch_30k 30000 1000 64");
  app.add_option("--with", args.with, "Only these libraries beside weft and the limits, as in async_simple,cppcoro")
      ->delimiter(',');
  auto* quick = app.add_flag("--quick", args.quick, "Some five minutes over the headline workloads (the default)");
  auto* full =
      app.add_flag("--full", args.full,
                   "Everything, for half an hour or, with all peers, some hours: uts has a tree of 20 s a call");
  auto* smoke =
      app.add_flag("--smoke", args.smoke, "One short round, one peer and two sizes a workload: does it all work?");
  quick->excludes(full)->excludes(smoke);
  full->excludes(smoke);
  app.add_option("--minutes", args.minutes, "How long to measure")->check(CLI::PositiveNumber);
  app.add_option("--rounds", args.rounds, "How many rounds (else as many as fit, at least five)")
      ->check(CLI::PositiveNumber);
  app.add_option("--limit", args.limit, "Seconds after which a program is killed (60; in a full run 300)")
      ->check(CLI::PositiveNumber);
  app.add_option("--report", args.report, "Print this system's own published table with our figures in it");
  app.add_option("--compare", args.compare, "Set this run beside an earlier one's JSON file");
  app.add_flag("--record", args.record, "Keep this run's ratios in recorded.json, for machines that lack a peer");
  app.add_option("--json", args.json_file, "Where to write the results");
  app.add_option("--html", args.html_file, "Where to write the page");
  app.add_flag("--list", args.list, "List workloads and libraries and exit");
  app.footer(
      "Each program is one round, and can be run by itself, as the driver runs it:\n"
      "  bench_<workload>_<library> [--size N] [--ms MEASURED] [--warm-up MS] [--full 0|1] [--OPTION N]...\n"
      "goroutine serves each of N coroutines --switches times, 1000 in a full run; else it goes by --ms.");
  app.add_option("--manifest", args.manifest_file, "What was built")
      ->default_str((own_folder() / "manifest.json").string())
      ->group("");
}

void list(std::ostream& out, const manifest& built) {
  out << "Workloads\n";
  for (const auto& each : catalogue()) {
    out << "  " << pad_right(std::string{each.name}, 16) << each.about << '\n';
    for (const auto& form : each.shapes)
      if (!form.name.empty()) out << "  " << pad_right(std::string{form.name}, 16) << row_title(each, form) << '\n';
    if (!each.parameters.empty())
      out << pad_right("", 18) << "with numbers of one's own: " << each.name << ' ' << numbers_taken(each) << '\n';
  }
  out << "\nLibraries\n";
  for (const auto& each : built.libraries)
    out << "  " << pad_right(each.id, 16)
        << (each.found ? each.name + " " + each.version : "not found; configure with " + each.option + "/its/prefix")
        << '\n';
}

std::string utc_now() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

void write(const std::string& path, const std::string& text) {
  std::ofstream out{path};
  out << text;
  if (!out.flush()) throw std::runtime_error{"cannot write " + path};
}

/// What to type for the same measurement; where its files went is nobody else's concern.
std::string command_to_repeat(int argc, const char* const* argv) {
  std::string command = "./dev bench";
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--manifest" || option == "--json" || option == "--html" || option == "--compare") {
      ++i;  // its value
    } else {
      command += " " + std::string{option};
    }
  }
  return command;
}

selection choose(const arguments& args, const std::string& published) {
  selection wanted{.workloads = args.workloads, .libraries = args.with};
  wanted.headline_only = !args.full && !args.smoke;
  wanted.one_peer = args.smoke;
  if (!args.report.empty() && wanted.workloads.empty()) wanted.workloads = published_workloads(published);
  return wanted;
}

schedule timetable(const arguments& args, const plan& what, const std::string& published) {
  using namespace std::chrono_literals;
  std::optional<std::size_t> rounds;
  if (args.rounds > 0) rounds = args.rounds;
  if (args.smoke && !rounds) rounds = 1;
  if (!args.report.empty() && !rounds) rounds = published_rounds(published);
  const double minutes = args.minutes > 0 ? args.minutes : args.full ? 30 : args.smoke ? 0 : 3;
  auto when = make_schedule(what, std::chrono::seconds{static_cast<long>(60 * minutes)}, rounds);
  when.limit = std::chrono::seconds{args.limit > 0 ? args.limit : args.full ? 300 : 60};
  when.full = args.full;
  return when;
}

int run(const arguments& args, const std::string& command) {
  const auto manifest_file =
      args.manifest_file.empty() ? own_folder() / "manifest.json" : std::filesystem::path{args.manifest_file};
  const auto built = read_manifest(manifest_file);
  if (args.list) {
    list(std::cout, built);
    return 0;
  }
  const auto published = built.source + "/report/published/" + args.report + ".json";
  const auto earlier = args.compare.empty() ? earlier_run{} : read_earlier_run(args.compare);
  auto what = make_plan(built, choose(args, published));
  if (what.assignments.empty()) throw std::runtime_error{"nothing to measure: none of these programs is built"};
  const auto when = timetable(args, what, published);

  run_record result;
  result.when = utc_now();
  result.command = command;
  result.mode = args.full ? "full" : args.smoke ? "smoke" : args.workloads.empty() ? "quick" : "picked";
  result.rounds = when.rounds;
  result.left_out = what.left_out;
  result.machine = describe_machine();
  result.machine["pinned to core"] = quiet_core();

  const auto ticks = read_cpu_ticks();
  const auto start = std::chrono::steady_clock::now();
  result.rows = measure(std::move(what), when);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto later = read_cpu_ticks();
  if (later.all > ticks.all) result.stolen = (later.stolen - ticks.stolen) / (later.all - ticks.all);

  evaluate(result);
  const auto recorded = built.source + "/recorded.json";
  add_recorded(result, built, recorded);

  print_table(std::cout, result, built);
  if (!args.report.empty()) print_published(std::cout, result, built, published);
  if (!args.compare.empty()) print_comparison(std::cout, result, earlier);
  print_remarks(std::cout, result, built);

  const auto folder = manifest_file.parent_path();
  const auto json_file = args.json_file.empty() ? (folder / "weft-bench.json").string() : args.json_file;
  const auto html_file = args.html_file.empty() ? (folder / "weft-bench.html").string() : args.html_file;
  const auto document = to_json(result, built);
  write(json_file, document.dump(1) + "\n");
  write(html_file, html_page(document, built.source + "/report"));
  if (args.record) write_recorded(result, built, recorded);
  std::cout << "\n" << json_file << "\n" << html_file << std::endl;
  return result.failures().empty() ? 0 : 1;
}

}  // namespace

int run_driver(int argc, const char* const* argv) {
  CLI::App app{"Measures weft beside its peers, interleaved, on this machine.", "weft-bench"};
  arguments args;
  define(app, args);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    return run(args, command_to_repeat(argc, argv));
  } catch (const std::exception& e) {
    std::cerr << "weft-bench: " << e.what() << '\n';
    return 2;
  }
}

}  // namespace bench
