// Starts one task for each input, side by side on one thread, and says how each of them ended. One that fails brings
// down nothing: as_result hands its exception over as a value.
#include <cstdio>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

namespace w = weft;

// Stands for a disk or a server: answers every question from another thread, the last one first.
class backend {
 public:
  w::future<std::string> ask(std::string question) {
    w::promise<std::string> answer;
    w::future<std::string> waiting = answer.get_future();
    open_.push_back({std::move(question), std::move(answer)});
    return waiting;
  }

  void answer_all() {
    for (pending& one : std::views::reverse(open_)) one.answer.set_value(one.question + "!");
    open_.clear();
  }

 private:
  struct pending {
    std::string question;
    w::promise<std::string> answer;
  };
  std::vector<pending> open_;
};

w::task<std::string> ask(backend& from, std::string question) {
  if (question.empty()) throw std::invalid_argument{"there is no question"};
  co_return co_await from.ask(std::move(question));
}

// Ends with the sentence of an answer or of a failure.
std::string describe(const w::result<std::string>& how) {
  if (how) return *how;
  try {
    std::rethrow_exception(how.exception());
  } catch (const std::exception& failure) {
    return std::string{"failed: "} + failure.what();
  }
}

w::task<> ask_all(backend& from, std::vector<std::string> questions) {
  std::vector<w::task<w::result<std::string>>> asked;
  for (std::string& one : questions) {
    auto attempt = [](backend& from, std::string question) -> w::task<w::result<std::string>> {
      co_return co_await w::as_result(ask(from, std::move(question)));
    };
    asked.push_back(attempt(from, std::move(one)));
  }

  // All of them have asked before the first one waits to be answered; the results come in the order of the questions.
  for (const auto& how : co_await w::when_all(std::move(asked))) std::printf("%s\n", describe(how).c_str());
}

w::task<> answer_when_asked(backend& from, std::jthread& thread) {
  thread = std::jthread{[&from] { from.answer_all(); }};  // started after all questions: when_all goes in order
  co_return;
}

int main() {
  backend far_away;
  std::jthread thread;
  w::sync_wait(w::when_all(ask_all(far_away, {"red", "", "blue"}), answer_when_asked(far_away, thread)));
}
