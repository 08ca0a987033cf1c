// A process that goes on while it is read: for what threads write to and never free, and what says of itself whether it was
// written to meanwhile, as the rings of the flight recorder do.
#include <fstream>
#include <string>
#include <utility>

#include "proc.hpp"
#include "target.hpp"

namespace weft_tool {
namespace {

class running final : public target {
 public:
  explicit running(int which) : live_{living_thread_of(which)} {
    pid = which;
    mappings_ = mappings_of(live_.pid());
    refuse_unless_readable(pid, live_, mappings_);
    find_modules(live_);
    for (const int one : threads_of(pid)) {
      thread_seen seen;
      seen.id = number_inside(pid, one);
      std::ifstream name{file_of(pid, ("task/" + std::to_string(one) + "/comm").c_str())};
      std::getline(name, seen.name);
      threads_.push_back(std::move(seen));
    }
  }

  const weft_tool::memory& memory() const noexcept override { return live_; }
  std::string what() const override { return "process " + std::to_string(pid); }
  bool is_running() const noexcept override { return true; }

 private:
  live_memory live_;
};

}  // namespace

std::unique_ptr<target> open_running(int pid) {
  refuse_this(pid);
  return std::make_unique<running>(pid);
}

}  // namespace weft_tool
