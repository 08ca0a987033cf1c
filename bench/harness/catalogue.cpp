#include "catalogue.hpp"

#include <algorithm>

namespace bench {

std::span<const workload> catalogue() {
  static const std::vector<workload> all{
      {.name = "chain",
       .about = "1000 nested awaits of distinct functions, every callee visible",
       .unit = "ns a level",
       .scale = 1,
       .kind = metric::time,
       .weight = 1.5,
       .shapes = {{}}},
      {.name = "chain_opaque",
       .about = "the same, each callee in another translation unit: nothing elides",
       .unit = "ns a level",
       .scale = 1,
       .kind = metric::time,
       .weight = 1.5,
       .shapes = {{}}},
      {.name = "collect_all",
       .about = "5000 chains of 50 awaits, started together and joined",
       .unit = "ms",
       .scale = 1e-6,
       .kind = metric::time,
       .weight = 1.5,
       .shapes = {{}}},
      {.name = "call_depth",
       .about = "one recursive task, awaiting itself that deep",
       .unit = "ns a level",
       .scale = 1,
       .kind = metric::time,
       .weight = 0.4,
       .shapes = {{1, "1 deep"},
                  {10, "10 deep", false},
                  {100, "100 deep", false},
                  {1000, "1000 deep"},
                  {10'000, "10 k deep", false},
                  {100'000, "100 k deep", false},
                  {1'000'000, "1 M deep"}}},
      {.name = "fork_monotonic",
       .about = "an empty fork, made and awaited, with memory that is never used again",
       .unit = "ns a fork",
       .scale = 1,
       .kind = metric::time,
       .weight = 0.7,
       .shapes = {{100'000, "100 k"},
                  {500'000, "500 k", false},
                  {1'000'000, "1 M"},
                  {3'000'000, "3 M", false},
                  {5'000'000, "5 M", false},
                  {7'000'000, "7 M", false},
                  {10'000'000, "10 M", false}}},
      {.name = "fork_pool",
       .about = "an empty fork that nobody awaits, with memory from a pool resource",
       .unit = "ns a fork",
       .scale = 1,
       .kind = metric::time,
       .weight = 0.7,
       .shapes = {{100'000, "100 k"},
                  {500'000, "500 k", false},
                  {1'000'000, "1 M"},
                  {3'000'000, "3 M", false},
                  {5'000'000, "5 M", false},
                  {7'000'000, "7 M", false},
                  {10'000'000, "10 M", false}}},
      {.name = "fork_default",
       .about = "an empty fork, made and awaited, with the library's own memory",
       .unit = "ns a fork",
       .scale = 1,
       .kind = metric::time,
       .weight = 0.5,
       .shapes = {{100'000, "100 k"}, {10'000'000, "10 M", false}}},
      {.name = "generator",
       .about = "the sum over a plain generator",
       .unit = "ns a value",
       .scale = 1,
       .kind = metric::time,
       .weight = 0.5,
       .shapes = {{.headline = false}}},
      {.name = "generator_tree",
       .about = "the sum over a recursive generator that walks a binary tree, 16 deep",
       .unit = "ns a value",
       .scale = 1,
       .kind = metric::time,
       .weight = 0.5,
       .shapes = {{.headline = false}}},
      {.name = "callback",
       .about = "awaiting a C function that reports through a callback, at once",
       .unit = "ns an await",
       .scale = 1,
       .kind = metric::time,
       .weight = 0.5,
       .shapes = {{.headline = false}}},
      {.name = "frame",
       .about = "bytes allocated for an await, once warm",
       .unit = "bytes an await",
       .scale = 1,
       .kind = metric::allocations,
       .weight = 0,
       .shapes = {{0, "straight line"}, {1, "likely branch"}, {2, "recursive"}, {3, "empty body, unseen"}}},
      {.name = "compile",
       .about = "compiling a file that only includes the headers",
       .unit = "s",
       .scale = 1e-9,
       .kind = metric::command,
       .weight = 0,
       .shapes = {{.headline = false}}},
  };
  return all;
}

const workload* find_workload(std::string_view name) {
  const auto all = catalogue();
  const auto found = std::ranges::find(all, name, &workload::name);
  return found == all.end() ? nullptr : &*found;
}

std::string row_title(const workload& work, const shape& form) {
  std::string title{work.name};
  if (!form.label.empty()) title += ", " + std::string{form.label};
  return title;
}

}  // namespace bench
