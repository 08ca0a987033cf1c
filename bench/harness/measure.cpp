#include "measure.hpp"

#include "environment.hpp"
#include "process.hpp"
#include "progress.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace bench {
namespace {

constexpr double startup_ms = 25;  // of a process, its output and the driver's part
constexpr double shortest_ms = 20, longest_ms = 400;
constexpr double warm_up_share = 0.25;
constexpr std::size_t most_rounds = 25;
constexpr std::size_t shapes_in_smoke = 2;  // of a workload: one thread and two, a few and many

bool contains(const std::vector<std::string>& list, std::string_view item) {
  return std::ranges::find(list, item) != list.end();
}

bool is_limit(std::string_view library) { return library == "plain" || library == "handwritten"; }

void check_names(const manifest& built, const selection& wanted) {
  check_words(wanted.workloads);
  for (const auto& name : wanted.libraries) (void)built.find(name);
}

/// The programs of a workload that the selection lets through, with placeholders (no command) for absent libraries.
std::vector<program> candidates(const manifest& built, const workload& work, const selection& wanted) {
  std::vector<program> out;
  bool has_peer = false;
  for (const auto& each : built.libraries) {
    const bool own = each.id == baseline;
    if (!own && !is_limit(each.id) && !wanted.libraries.empty() && !contains(wanted.libraries, each.id)) continue;
    if (wanted.one_peer && !own && (has_peer || is_limit(each.id))) continue;
    bool any = false;
    for (const auto& p : built.programs) {
      if (p.workload != work.name || p.library != each.id) continue;
      if (wanted.one_peer && !p.smoke) continue;
      out.push_back(p);
      any = true;
    }
    if (!any && !each.found && !wanted.one_peer) out.push_back({std::string{work.name}, each.id, "", {}});
    has_peer = has_peer || (any && !own);
  }
  return out;
}

/// Takes over what one process reported.
entry::status record(entry& into, const workload& work, const process_result& result) {
  if (!result.ok()) throw std::runtime_error{result.failure()};
  if (work.kind == metric::command) {
    into.rounds.push_back(result.seconds);
    into.peak_rss_kib = std::max(into.peak_rss_kib, result.peak_rss_kib);
    return entry::status::measured;
  }
  if (result.out.empty()) throw std::runtime_error{"printed no result"};
  const auto line = json::parse(result.out);
  if (line.contains("not here")) {
    into.note = line.at("not here");
    return entry::status::not_here;
  }
  into.peak_rss_kib = std::max(into.peak_rss_kib, line.at("peak_rss_kib").get<long>());
  into.own_rss_kib = line.at("start_rss_kib").get<long>();
  into.allocator = line.value("allocator", "");
  for (const auto& [name, value] : line.at("extra").get<std::map<std::string, double>>())
    into.extra_rounds[name].push_back(value);
  if (work.kind == metric::allocations) {
    into.allocations = line.at("allocations").get<double>();
    into.rounds.push_back(line.at("bytes").get<double>());
  } else {
    into.rounds.push_back(line.at("ns").get<double>() * work.scale);
    if (line.contains("cpu_ns")) into.cpu_rounds.push_back(line.at("cpu_ns").get<double>() * work.scale);
  }
  return entry::status::measured;
}

/// An allocation count is exact, and compilers are slow: not every round needs them.
bool runs_in_round(const workload& work, std::size_t round) {
  if (work.kind == metric::allocations) return round == 0;
  if (work.kind == metric::command) return round < fewest_rounds;
  return true;
}

double round_ms(const workload& work, const schedule& when) {
  return std::max(shortest_ms, when.ms * (work.weight == 0 ? 0 : work.weight));
}

process_result run_program(const row& in, const program& what, const schedule& when, int core) {
  process_options options{.cpu = {}, .limit = when.limit};
  if (in.form.pinned) options.cpu = core;
  auto command = what.command;
  if (in.work->kind != metric::command) {
    const auto ms = round_ms(*in.work, when);
    command.insert(command.end(), {"--size", std::to_string(in.form.size), "--ms", std::to_string(std::lround(ms)),
                                   "--warm-up", std::to_string(std::lround(ms * warm_up_share))});
    command.insert(command.end(), in.form.options.begin(), in.form.options.end());
    if (when.full && in.work->longer_in_full) command.insert(command.end(), {"--full", "1"});
  }
  return run_process(command, options);
}

void run_once(row& in, const assignment& what, const schedule& when, int core) {
  auto& into = in.entries[what.entry];
  try {
    into.state = record(into, *in.work, run_program(in, *what.what, when, core));
  } catch (const std::exception& e) {
    into.state = entry::status::failed;
    into.note = e.what();
  }
}

/// What `pacer` does in a second when it is told no rate: the median of three runs. 0: this machine can't run it.
double fastest_rate(const row& in, const program& pacer, const schedule& when, int core) {
  entry found;
  for (int i = 0; i != 3; ++i)
    if (record(found, *in.work, run_program(in, pacer, when, core)) != entry::status::measured) return 0;
  return 1e9 / median(found.extra_rounds.at("ns that passed"));
}

/// Tells all programs of a paced workload one rate: half of the fastest of the limit by hand, else of the first program.
void pace(plan& what, std::size_t which, const schedule& when, int core, progress& shown) {
  row& in = what.rows[which];
  const assignment* pacer = nullptr;
  for (const auto& each : what.assignments) {
    if (each.row != which) continue;
    if (pacer == nullptr || in.entries[each.entry].key() == "handwritten") pacer = &each;
  }
  if (pacer == nullptr) return;
  shown.step(row_title(*in.work, in.form) + " · at which rate?");
  try {
    const auto rate = std::lround(fastest_rate(in, *pacer->what, when, core) / 2);
    if (rate > 0) in.form.options.insert(in.form.options.end(), {"--rate", std::to_string(rate)});
  } catch (const std::exception& e) {
    const std::string why = "has no rate, as " + in.entries[pacer->entry].key() + " failed: " + e.what();
    for (const auto& each : what.assignments) {
      if (each.row != which) continue;
      in.entries[each.entry].state = entry::status::failed;
      in.entries[each.entry].note = why;
    }
    shown.complain(row_title(*in.work, in.form) + " " + why);
  }
}

}  // namespace

plan make_plan(const manifest& built, const selection& wanted) {
  check_names(built, wanted);
  plan out;
  for (const auto& work : catalogue()) {
    const auto shapes = shapes_asked_for(work, wanted.workloads);
    if (shapes.empty()) continue;
    const auto programs = candidates(built, work, wanted);
    if (std::ranges::all_of(programs, [](const program& p) { return p.command.empty(); })) continue;
    std::size_t smoked = 0;
    for (const auto& form : shapes) {
      if (wanted.one_peer && (!form.smoke || ++smoked > shapes_in_smoke)) continue;
      if (wanted.headline_only && !form.headline && wanted.workloads.empty()) {
        out.left_out.push_back(row_title(work, form));
        continue;
      }
      row next{.work = &work, .form = form, .entries = {}};
      for (const auto& p : programs) {
        next.entries.push_back({.library = p.library, .variant = p.variant});
        if (p.command.empty()) continue;
        const auto found = std::ranges::find_if(built.programs, [&](const program& b) {
          return b.workload == p.workload && b.library == p.library && b.variant == p.variant;
        });
        out.assignments.push_back({out.rows.size(), next.entries.size() - 1, &*found});
      }
      out.rows.push_back(std::move(next));
    }
  }
  return out;
}

schedule make_schedule(const plan& what, std::chrono::seconds budget, std::optional<std::size_t> rounds) {
  double weights = 0, fixed_ms = 0;
  for (const auto& each : what.assignments) {
    const auto& work = *what.rows[each.row].work;
    weights += work.weight * (1 + warm_up_share);
    fixed_ms += startup_ms;
  }
  const double budget_ms = 1000.0 * static_cast<double>(budget.count());
  schedule out;
  out.rounds = rounds.value_or(9);
  const auto share = [&] {
    return weights == 0 ? shortest_ms : (budget_ms / static_cast<double>(out.rounds) - fixed_ms) / weights;
  };
  // Where there is time to spare, more rounds narrow the interval better than longer ones.
  while (!rounds && out.rounds < most_rounds && share() > longest_ms) ++out.rounds;
  while (!rounds && out.rounds > fewest_rounds && share() < 2 * shortest_ms) --out.rounds;
  out.ms = std::clamp(share(), shortest_ms, longest_ms);
  return out;
}

std::vector<row> measure(plan what, const schedule& when) {
  const int core = quiet_core();
  std::size_t steps = 0;
  for (std::size_t round = 0; round != when.rounds; ++round)
    for (const auto& each : what.assignments) steps += runs_in_round(*what.rows[each.row].work, round);

  const auto is_paced = [](const row& each) { return each.work->paced && each.form.options.empty(); };
  steps += static_cast<std::size_t>(std::ranges::count_if(what.rows, is_paced));

  progress shown{steps};
  for (std::size_t i = 0; i != what.rows.size(); ++i)
    if (is_paced(what.rows[i])) pace(what, i, when, core, shown);
  for (std::size_t round = 0; round != when.rounds; ++round) {
    for (std::size_t i = 0, all = what.assignments.size(); i != all; ++i) {
      const auto& each = what.assignments[round % 2 == 0 ? i : all - 1 - i];  // the other way round in every second one
      auto& in = what.rows[each.row];
      const auto& into = in.entries[each.entry];
      if (!runs_in_round(*in.work, round)) continue;
      shown.step("round " + std::to_string(round + 1) + " of " + std::to_string(when.rounds) + "  " +
                 row_title(*in.work, in.form) + " · " + into.key());
      if (into.state == entry::status::failed || into.state == entry::status::not_here) continue;  // it had its chance
      run_once(in, each, when, core);
      if (into.state == entry::status::failed)
        shown.complain(row_title(*in.work, in.form) + ", " + into.key() + " " + into.note);
    }
  }
  return std::move(what.rows);
}

}  // namespace bench
