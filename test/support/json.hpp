// Just enough of JSON for tests to read what weft writes: throws where it is none (RFC 8259).
#pragma once

#include <cctype>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace test {

class json {
 public:
  static json parse(std::string_view text) {
    reader in{text};
    json all = in.value(0);
    in.blanks();
    if (!in.left.empty()) throw std::runtime_error{"something stands behind the JSON"};
    return all;
  }

  const json& operator[](const std::string& name) const {
    const auto found = members_.find(name);
    if (kind_ != kind::object || found == members_.end()) throw std::runtime_error{"no member " + name};
    return found->second;
  }
  bool has(const std::string& name) const { return members_.contains(name); }
  const std::vector<json>& elements() const { return expect(kind::array), elements_; }
  const std::string& text() const { return expect(kind::text), text_; }
  double number() const { return expect(kind::number), number_; }
  bool truth() const { return expect(kind::truth), number_ != 0; }

 private:
  enum class kind { null, truth, number, text, array, object };

  void expect(kind which) const {
    if (kind_ != which) throw std::runtime_error{"JSON of another kind"};
  }

  struct reader {
    std::string_view left;

    void blanks() {
      while (!left.empty() && (left[0] == ' ' || left[0] == '\n' || left[0] == '\t' || left[0] == '\r'))
        left.remove_prefix(1);
    }
    char next() {
      if (left.empty()) throw std::runtime_error{"the JSON ends too soon"};
      const char one = left[0];
      left.remove_prefix(1);
      return one;
    }
    void must(char one) {
      blanks();
      if (next() != one)
        throw std::runtime_error{std::string{"JSON without "} + one + " before " + std::string{left.substr(0, 40)}};
    }
    bool takes(char one) {
      blanks();
      if (left.empty() || left[0] != one) return false;
      left.remove_prefix(1);
      return true;
    }
    bool takes(std::string_view word) {
      if (!left.starts_with(word)) return false;
      left.remove_prefix(word.size());
      return true;
    }

    std::string string() {
      must('"');
      std::string all;
      for (char one; (one = next()) != '"';) {
        if (static_cast<unsigned char>(one) < 0x20) throw std::runtime_error{"a control character in a JSON string"};
        if (one != '\\') {
          all += one;
          continue;
        }
        switch (const char escaped = next()) {
          case '"':
          case '\\':
          case '/': all += escaped; break;
          case 'n': all += '\n'; break;
          case 't': all += '\t'; break;
          case 'r': all += '\r'; break;
          case 'b': all += '\b'; break;
          case 'f': all += '\f'; break;
          case 'u': {
            std::string digits;
            for (int i = 0; i != 4; ++i) digits += next();
            char* end = nullptr;
            const unsigned long code = std::strtoul(digits.c_str(), &end, 16);
            if (end != digits.c_str() + 4) throw std::runtime_error{"no hexadecimal number in a JSON string"};
            all += static_cast<char>(code);  // enough for tests
            break;
          }
          default: throw std::runtime_error{"a wrong escape in a JSON string"};
        }
      }
      return all;
    }

    json value(int depth) {
      if (depth == 100) throw std::runtime_error{"JSON that nests too deep"};
      json one;
      blanks();
      if (takes('{')) {
        one.kind_ = kind::object;
        if (takes('}')) return one;
        do {
          blanks();
          const std::string name = string();
          must(':');
          one.members_[name] = value(depth + 1);
        } while (takes(','));
        must('}');
      } else if (takes('[')) {
        one.kind_ = kind::array;
        if (takes(']')) return one;
        do one.elements_.push_back(value(depth + 1));
        while (takes(','));
        must(']');
      } else if (!left.empty() && left[0] == '"') {
        one.kind_ = kind::text;
        one.text_ = string();
      } else if (left.starts_with("true") || left.starts_with("false")) {
        one.kind_ = kind::truth;
        one.number_ = takes("true") ? 1 : 0;
        if (one.number_ == 0) takes("false");
      } else if (!takes("null")) {
        const std::string number{left.substr(0, left.find_first_not_of("0123456789+-.eE"))};
        char* end = nullptr;
        one.kind_ = kind::number;
        one.number_ = std::strtod(number.c_str(), &end);
        if (number.empty() || *end != '\0')
          throw std::runtime_error{"no JSON value: " + std::string{left.substr(0, 40)}};
        left.remove_prefix(number.size());
      }
      return one;
    }
  };

  kind kind_ = kind::null;
  double number_ = 0;
  std::string text_;
  std::vector<json> elements_;
  std::map<std::string, json> members_;
};

}  // namespace test
