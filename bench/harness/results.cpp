#include "results.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

namespace bench {
namespace {

json read_json(const std::string& path) {
  std::ifstream in{path};
  if (!in) throw std::runtime_error{"cannot read " + path};
  try {
    return json::parse(in);
  } catch (const json::exception& e) {
    throw std::runtime_error{path + " is not what it should be: " + e.what()};
  }
}

json estimate_json(const estimate& e) {
  return {{"value", e.value}, {"low", e.low}, {"high", e.high}, {"coverage", e.coverage}};
}

std::string_view status_name(entry::status status) {
  switch (status) {
    case entry::status::measured: return "measured";
    case entry::status::failed: return "failed";
    case entry::status::recorded: return "recorded";
    case entry::status::absent: return "absent";
    case entry::status::not_here: return "not here";
  }
  return "";
}

json entry_json(const entry& e) {
  json out{{"library", e.library}};
  if (!e.variant.empty()) out["variant"] = e.variant;
  out["status"] = status_name(e.state);
  if (!e.note.empty()) out["note"] = e.note;
  if (e.state == entry::status::measured) {
    out["figure"] = estimate_json(e.figure);
    out["rounds"] = e.rounds;
    if (e.cpu) out["cpu"] = estimate_json(*e.cpu);
    if (!e.cpu_rounds.empty()) out["cpu_rounds"] = e.cpu_rounds;
    out["peak_rss_kib"] = e.peak_rss_kib;
    out["own_rss_kib"] = e.own_rss_kib;
    if (!e.allocator.empty()) out["allocator"] = e.allocator;
  }
  if (e.ratio) out["ratio"] = estimate_json(*e.ratio);
  if (e.allocations) out["allocations"] = *e.allocations;
  if (!e.extra.empty()) out["extra"] = e.extra;
  return out;
}

/// Those that the programs ran on: mostly one.
std::string allocators(const run_record& run) {
  std::set<std::string> all;
  for (const auto& each : run.rows)
    for (const auto& e : each.entries)
      if (!e.allocator.empty()) all.insert(e.allocator);
  std::string text;
  for (const auto& each : all) text += (text.empty() ? "" : ", ") + each;
  return text;
}

}  // namespace

const library& manifest::find(std::string_view id) const {
  const auto found = std::ranges::find(libraries, id, &library::id);
  if (found != libraries.end()) return *found;
  std::string known;
  for (const auto& each : libraries) known += (known.empty() ? "" : ", ") + each.id;
  throw std::runtime_error{"there is no library '" + std::string{id} + "'; the bench knows " + known};
}

manifest read_manifest(const std::string& path) {
  const auto in = read_json(path);
  manifest out;
  try {
    out.source = in.at("source");
    out.compiler = in.at("compiler");
    out.build = in.at("build");
    for (const auto& [id, each] : in.at("libraries").items())
      out.libraries.push_back({id, each.at("name"), each.at("version"), each.at("option"), each.at("found")});
    for (const auto& each : in.at("programs")) {
      if (each.value("optional", false) && !std::filesystem::exists(each.at("command").back().get<std::string>())) {
        if (each.value("variant", "").empty())
          std::ranges::find(out.libraries, each.at("library").get<std::string>(), &library::id)->found = false;
        continue;
      }
      out.programs.push_back({each.at("workload"), each.at("library"), each.value("variant", ""), each.at("command"),
                              each.value("smoke", true)});
    }
  } catch (const json::exception& e) {
    throw std::runtime_error{path + " is not what it should be: " + e.what()};
  }
  return out;
}

const entry* row::find(std::string_view key) const {
  const auto found = std::ranges::find_if(entries, [&](const entry& e) { return e.key() == key; });
  return found == entries.end() ? nullptr : &*found;
}

const entry* row::base() const {
  const entry* found = nullptr;
  for (const entry& e : entries)
    if (e.library == baseline && (found == nullptr || e.variant.empty())) found = &e;
  return found;
}

bool row::shows_cpu() const {
  return std::ranges::any_of(work->shapes, [](const shape& form) { return !form.pinned; }) &&
         std::ranges::any_of(entries, [](const entry& e) { return e.cpu.has_value(); });
}

std::vector<std::string> run_record::failures() const {
  std::vector<std::string> out;
  for (const auto& each : rows)
    for (const auto& e : each.entries)
      if (e.state == entry::status::failed)
        out.push_back(row_title(*each.work, each.form) + ", " + e.key() + ": " + e.note);
  return out;
}

void evaluate(run_record& run) {
  for (auto& each : run.rows) {
    for (auto& e : each.entries) {
      if (e.state != entry::status::measured) continue;
      e.figure = median_interval(e.rounds);
      if (!e.cpu_rounds.empty()) e.cpu = median_interval(e.cpu_rounds);
      for (const auto& [what, rounds] : e.extra_rounds) e.extra[what] = median(rounds);
    }
    const auto* base = each.base();
    if (base == nullptr || base->state != entry::status::measured || base->figure.value == 0) continue;
    for (auto& e : each.entries)
      if (e.state == entry::status::measured) e.ratio = paired_ratio(e.rounds, base->rounds);
  }
}

json to_json(const run_record& run, const manifest& built) {
  json out{{"format", 1},          {"when", run.when},       {"command", run.command},
           {"mode", run.mode},     {"rounds", run.rounds},   {"seconds", run.seconds},
           {"stolen", run.stolen}, {"machine", run.machine}, {"build", built.build}};
  for (const auto& each : built.libraries)
    out["libraries"][each.id] = {
        {"name", each.name}, {"version", each.version}, {"found", each.found}, {"option", each.option}};
  if (const auto used = allocators(run); !used.empty()) out["machine"]["allocator"] = used;
  out["rows"] = json::array();
  for (const auto& each : run.rows) {
    json entries = json::array();
    for (const auto& e : each.entries) entries.push_back(entry_json(e));
    out["rows"].push_back({{"title", row_title(*each.work, each.form)},
                           {"workload", each.work->name},
                           {"about", each.work->about},
                           {"size", each.form.size},
                           {"label", each.form.label},
                           {"unit", each.work->unit},
                           {"counts", each.work->kind == metric::allocations},
                           {"shows_cpu", each.shows_cpu()},
                           {"results", std::move(entries)}});
  }
  out["left_out"] = run.left_out;
  return out;
}

earlier_run read_earlier_run(const std::string& path) {
  const auto in = read_json(path);
  earlier_run out;
  try {
    for (const auto& each : in.at("rows"))
      for (const auto& result : each.at("results")) {
        if (result.at("status") != "measured") continue;
        entry e{.library = result.at("library"), .variant = result.value("variant", "")};
        out[each.at("title").get<std::string>()][e.key()] = result.at("rounds").get<std::vector<double>>();
      }
  } catch (const json::exception& e) {
    throw std::runtime_error{path + " is no result of this bench: " + e.what()};
  }
  return out;
}

void add_recorded(run_record& run, const manifest& built, const std::string& path) {
  if (!std::ifstream{path}) return;
  const auto all = read_json(path);
  const auto records = all.value(built.compiler, json::object());
  for (auto& each : run.rows) {
    const auto title = row_title(*each.work, each.form);
    for (auto& e : each.entries) {
      if (e.state != entry::status::absent || !records.contains(title) || !records[title].contains(e.key())) continue;
      const auto& record = records[title][e.key()];
      e.state = entry::status::recorded;
      e.ratio = estimate{record.at("ratio"), record.at("low"), record.at("high"), record.at("coverage")};
      e.note = record.at("date").get<std::string>() + ", " + record.at("machine").get<std::string>();
    }
  }
}

void write_recorded(const run_record& run, const manifest& built, const std::string& path) {
  json all = json::object();
  if (std::ifstream{path}) all = read_json(path);
  for (const auto& each : run.rows)
    for (const auto& e : each.entries) {
      if (e.state != entry::status::measured || !e.ratio || e.library == baseline) continue;
      all[built.compiler][row_title(*each.work, each.form)][e.key()] = {
          {"ratio", e.ratio->value},        {"low", e.ratio->low},
          {"high", e.ratio->high},          {"coverage", e.ratio->coverage},
          {"date", run.when.substr(0, 10)}, {"machine", run.machine.value("cpu", "an unknown machine")}};
    }
  std::ofstream out{path};
  out << all.dump(1) << '\n';
  if (!out.flush()) throw std::runtime_error{"cannot write " + path};
}

}  // namespace bench
