// main() of every benchmark program: runs one round and prints it as one line of JSON.
//
//     bench_chain_weft [--size N] [--ms MEASURED] [--warm-up MS] [--full 0|1] [--server PROGRAM] [--OPTION N]...
//
// OPTIONs are those of the workload: see its workload.hpp.
// A workload that this machine can't run prints {"not here":"why"} instead.
// Exit status: 0, or 1 after a sentence on stderr (a wrong result, an exception, an option it doesn't know).
#include "harness.hpp"

#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <utility>

namespace bench {
using namespace std::chrono_literals;
namespace {

int run_round(int argc, char** argv) {
  std::size_t size = 0;
  std::chrono::milliseconds budget = 200ms;
  std::chrono::milliseconds warm_up = 50ms;
  bool full = false;
  std::string server;
  std::map<std::string, std::size_t, std::less<>> options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    if (i + 1 == argc) throw std::invalid_argument{std::string{option} + " needs a value"};
    const auto value = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--size") {
      size = value;
    } else if (option == "--ms") {
      budget = std::chrono::milliseconds{value};
    } else if (option == "--warm-up") {
      warm_up = std::chrono::milliseconds{value};
    } else if (option == "--full") {
      full = value != 0;
    } else if (option == "--server") {
      server = argv[i + 1];
    } else {
      options.emplace(option, value);
    }
  }
  state round{size, warm_up, budget, full, std::move(options)};
  round.set_server(std::move(server));
  try {
    run(round);
  } catch (const not_here& why) {
    std::cout << "{\"not here\":\"" << why.what() << "\"}" << std::endl;  // a sentence without quotes
    return 0;
  }
  if (const auto unknown = round.unknown_option(); !unknown.empty())
    throw std::invalid_argument{"unknown option " + unknown};
  std::cout << round.to_json() << std::endl;
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::run_round(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << argv[0] << ": " << e.what() << '\n';
  }
  return 1;
}
