// What is asked for, in words: names of workloads, each with the numbers that its programs are to be given.
#include "catalogue.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>

namespace bench {
namespace {

using words_of_one = std::span<const std::string>;

bool is_number(std::string_view word) {
  constexpr std::size_t digits = 18;  // which any size has room for
  return !word.empty() && word.size() <= digits &&
         std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// Takes the first word, and the numbers that come after it, from `words`.
words_of_one take_one(words_of_one& words) {
  std::size_t count = 1;
  while (count != words.size() && is_number(words[count])) ++count;
  const auto one = words.first(count);
  words = words.subspan(count);
  return one;
}

const shape* find_shape(const workload& work, std::string_view name) {
  const auto found = std::ranges::find(work.shapes, name, &shape::name);
  return name.empty() || found == work.shapes.end() ? nullptr : &*found;
}

/// That of the catalogue where it has one of this size.
shape shape_of(const workload& work, words_of_one numbers) {
  shape form{.size = std::stoull(numbers.front()), .label = numbers.front()};
  form.pinned = std::ranges::all_of(work.shapes, &shape::pinned);
  if (const auto known = std::ranges::find(work.shapes, form.size, &shape::size); known != work.shapes.end()) {
    if (numbers.size() == 1) return *known;
    form.pinned = known->pinned;
  }
  for (std::size_t i = 1; i != numbers.size(); ++i) {
    form.label += " " + numbers[i];
    form.options.insert(form.options.end(), {"--" + std::string{work.parameters[i - 1]}, numbers[i]});
  }
  return form;
}

}  // namespace

std::vector<shape> shapes_asked_for(const workload& work, const std::vector<std::string>& words) {
  if (words.empty()) return work.shapes;
  std::vector<shape> out;
  for (words_of_one left{words}; !left.empty();) {
    const auto one = take_one(left);
    if (const shape* alone = find_shape(work, one.front())) {
      out.push_back(*alone);
    } else if (one.front() == work.name && one.size() == 1) {
      return work.shapes;
    } else if (one.front() == work.name) {
      out.push_back(shape_of(work, one.subspan(1)));
    }
  }
  return out;
}

void check_words(const std::vector<std::string>& words) {
  for (words_of_one left{words}; !left.empty();) {
    const auto one = take_one(left);
    const bool names_shape = std::ranges::any_of(
        catalogue(), [&](const workload& each) { return find_shape(each, one.front()) != nullptr; });
    const workload* work = find_workload(one.front());
    if (work == nullptr && !names_shape) {
      std::string known;
      for (const auto& each : catalogue()) known += (known.empty() ? "" : ", ") + std::string{each.name};
      throw std::runtime_error{"there is no workload '" + one.front() + "'; the bench knows " + known};
    }
    if (work == nullptr && one.size() > 1)
      throw std::runtime_error{"'" + one.front() + "' has its size, and takes no numbers"};
    if (work != nullptr && one.size() > 2 + work->parameters.size())
      throw std::runtime_error{"too many numbers: it is '" + one.front() + " " + numbers_taken(*work) + "'"};
    if (work == nullptr || !work->size_is_threads || one.size() == 1) continue;
    const std::size_t threads = std::stoull(one[1]), most = 2 * std::size_t{std::thread::hardware_concurrency()};
    if (threads == 0 || threads > most)
      throw std::runtime_error{"'" + one.front() + "' takes how many threads a server has: 1 to " +
                               std::to_string(most) + " with the processors of this machine, not " + one[1]};
  }
}

std::string numbers_taken(const workload& work) {
  std::string out = "N";
  for (const auto& each : work.parameters) {
    out += ' ';
    for (const char c : each) out += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return out;
}

}  // namespace bench
