// Requests by HTTP, as bytes: random ones, most of them nearly right, in random pieces. Whatever the pieces are, the same is read
// from them; and nothing gets an answer that has not the token, and a Host of this machine's.
#include <algorithm>
#include <string>
#include <vector>

#include "observer/http.hpp"
#include "support/fuzz.hpp"

namespace {

using weft::detail::http_reader;

struct read_so_far {
  std::vector<weft::detail::http_request> all;
  bool is_wrong = false;
};

read_so_far read_in_pieces(const std::string& text, const std::vector<std::size_t>& cuts) {
  read_so_far result;
  http_reader reader;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= cuts.size() && !result.is_wrong; ++i) {
    const std::size_t end = i == cuts.size() ? text.size() : std::max(begin, std::min(cuts[i], text.size()));
    std::string_view piece = std::string_view{text}.substr(begin, end - begin);
    begin = end;
    while (!piece.empty()) {
      std::size_t taken = 0;
      const auto state = reader.read(piece, taken);
      test::must(taken <= piece.size(), "it took more than there is");
      piece.remove_prefix(taken);
      if (state == http_reader::state::complete) {
        result.all.push_back(reader.take());
        if (!result.all.back().keeps_alive) return result;  // the connection ends
        continue;
      }
      if (state != http_reader::state::goes_on) result.is_wrong = true;
      if (result.is_wrong || piece.empty()) break;
      test::must(taken != 0, "it takes nothing, and says nothing");
    }
  }
  return result;
}

std::string nearly_http(test::choices& chosen) {
  constexpr std::string_view pieces[] = {"GET ",
                                         "POST ",
                                         "HEAD ",
                                         "/",
                                         "/metrics",
                                         "/all.json",
                                         "?a=b",
                                         "/../",
                                         " HTTP/1.1\r\n",
                                         " HTTP/1.0\r\n",
                                         "Host: 127.0.0.1:80\r\n",
                                         "Host: evil\r\n",
                                         "Authorization: Bearer secret-of-the-test\r\n",
                                         "Authorization: Basic x\r\n",
                                         "Origin: http://127.0.0.1:80\r\n",
                                         "Origin: null\r\n",
                                         "Content-Length: 3\r\n",
                                         "Content-Length: 0\r\n",
                                         "Transfer-Encoding: chunked\r\n",
                                         "Connection: close\r\n",
                                         "Upgrade: x\r\n",
                                         "\r\n",
                                         "abc",
                                         "\n",
                                         "\xff",
                                         ":",
                                         "X: y\r\n",
                                         " folded\r\n",
                                         "%2e%2e"};
  std::string text = chosen.one_in(4) ? "" : "GET /metrics HTTP/1.1\r\n";
  while (chosen.are_left()) text += pieces[chosen.up_to(std::size(pieces) - 1)];
  return text + "\r\n\r\n";
}

}  // namespace

WEFT_FUZZ(observer_http, 20'000, 24) {
  std::vector<std::size_t> cuts;
  for (std::size_t i = chosen.up_to(4); i != 0; --i) cuts.push_back(chosen.up_to(200));
  std::sort(cuts.begin(), cuts.end());
  const std::string text = nearly_http(chosen);
  const read_so_far whole = read_in_pieces(text, {}), pieces = read_in_pieces(text, cuts);
  test::must(whole.is_wrong == pieces.is_wrong && whole.all.size() == pieces.all.size(), "pieces matter: " + text);
  for (std::size_t i = 0; i != whole.all.size(); ++i) {
    const auto &one = whole.all[i], &other = pieces.all[i];
    test::must(one.target == other.target && one.host == other.host && one.hosts == other.hosts &&
                   one.authorization == other.authorization && one.keeps_alive == other.keeps_alive,
               "pieces matter: " + text);
    const auto verdict = judge(one, {.port = 80, .token = "secret-of-the-test"});
    if (verdict.status != 200) continue;
    test::must(text.find("secret-of-the-test") != text.npos && text.find("127.0.0.1") != text.npos &&
                   (one.target == "/" || one.target == "/metrics" || one.target == "/all.json"),
               "it is answered: " + text);
    test::must(!one.has_body && (one.is_get || one.is_head), "it is answered: " + text);
  }
}
