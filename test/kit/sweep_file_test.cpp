// Files, with a stop at each place of each await, and without memory: nothing is left open, and nothing beside a file that was to be
// replaced.
#include <weft/file.hpp>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "file/directories.hpp"
#include "net/open_descriptors.hpp"
#include "support/file_calls.hpp"
#include "support/sweep.hpp"

namespace {

using namespace test::in_sweeps;
using weft::file;

const test::own_directory& in() {
  static const test::own_directory one{test::places_for_files().back()};
  return one;
}

// All calls wait, so that there is something to be stopped.
struct leaves_nothing {
  test::nothing_at_once not_at_once;
  std::size_t before = test::open_descriptors();

  void check() const {
    // On a ring, a thread closes what has no name.
    require(test::come_to_descriptors(before), "a descriptor was left open");
    for (const auto& entry : std::filesystem::directory_iterator{in().path()})
      require(entry.path().filename().native().size() == 1, "a file was left beside another one");
  }
};
constexpr weft::test::sweep_options waits{.inline_completion = false};
constexpr weft::file_options to_make{.write = true, .create = true};

template <class By>
struct reads_and_writes : leaves_nothing {
  part<By> run() {
    file one = co_await file::open(to_make, in().at("a"));
    co_await one.write_at(0, "abc");
    const std::size_t written = co_await one.write_some_at(3, std::as_bytes(std::span{"d", 1}));
    require(written == 1, "a byte was lost");
    std::string got(4, '?');
    const std::size_t size = co_await one.read_at(0, std::as_writable_bytes(std::span{got}));
    require(size == 4 && got == "abcd", "what was read is not what was written");
    co_await one.close();
    require(!one.is_open(), "it is open still");
  }
};
TEST(sweep, file) {
  sweep_both<reads_and_writes>("file::open, file::write_at, file::write_some_at, file::read_at, file::close", waits);
}

// In parts, of which one is empty.
template <class By>
struct reads_and_writes_parts : leaves_nothing {
  part<By> run() {
    const file one = co_await file::open(to_make, in().at("b"));
    const std::span<const std::byte> text = std::as_bytes(std::span{"abcdef", 6});
    const std::array<std::span<const std::byte>, 3> written{text.first(2), {}, text.subspan(2)};
    co_await one.write_at(1, written);
    std::string got(5, '?');
    const std::span<std::byte> all = std::as_writable_bytes(std::span{got});
    const std::array<std::span<std::byte>, 3> into{all.first(1), all.first(0), all.subspan(1)};
    const std::size_t size = co_await one.read_at(2, into);
    require(size == 5 && got == "bcdef", "what was read is not what was written");
  }
};
TEST(sweep, file_parts) { sweep_both<reads_and_writes_parts>("file::read_at(parts), file::write_at(parts)", waits); }

template <class By>
struct concerns_all : leaves_nothing {
  part<By> run() {
    const file one = co_await file::temporary(in().path());
    co_await one.append("abc");
    co_await one.truncate(5);
    const std::uint64_t size = co_await one.size();
    const weft::file_status known = co_await one.stat();
    require(size == 5 && known.size == 5, "its size is another one");
  }
};
TEST(sweep, whole_of_a_file) {
  sweep_both<concerns_all>("file::temporary, file::append, file::truncate, file::size, file::stat", waits);
}

template <class By>
struct syncs : leaves_nothing {
  part<By> run() {
    const file one = co_await file::open(to_make, in().at("s"));
    co_await one.allocate(0, 10);
    co_await one.sync();
    co_await one.sync_data();
  }
};
TEST(sweep, file_sync) { sweep_both<syncs>("file::allocate, file::sync, file::sync_data", waits); }

template <class By>
struct locks : leaves_nothing {
  part<By> run() {
    const file one = co_await file::open(to_make, in().at("l")), other = co_await file::open(to_make, in().at("l"));
    {
      const weft::file_lock held = co_await one.lock();
      const std::optional<weft::file_lock> none = co_await other.try_lock();
      require(!none, "two have one lock");
    }
    const weft::file_lock held = co_await other.lock();
    require(held.is_held(), "it has no lock");
  }
};
TEST(sweep, file_lock) { sweep_both<locks>("file::lock, file::try_lock", waits); }

template <class By>
struct streams : leaves_nothing {
  part<By> run() {
    const file one = co_await file::temporary(in().path());
    weft::file_writer to{one};
    co_await to.write("abc");
    const std::size_t written = co_await to.write_some(std::as_bytes(std::span{"d", 1}));
    require(written == 1 && to.position() == 4, "a byte was lost");
    weft::file_reader from{one};
    std::string got(9, '?');
    const std::size_t size = co_await from.read(std::as_writable_bytes(std::span{got}));
    require(size == 4 && from.position() == 4, "a byte was lost");
  }
};
TEST(sweep, file_streams) {
  sweep_both<streams>("file_reader::read, file_writer::write, file_writer::write_some", waits);
}

template <class By>
struct whole : leaves_nothing {
  part<By> run() {
    co_await weft::write_file(in().at("w"), "abc");
    const std::string got = co_await weft::read_file(in().at("w"));
    require(got == "abc", "what was read is not what was written");
  }
};
TEST(sweep, whole_files) { sweep_both<whole>("read_file, write_file", waits); }

template <class By>
struct replaces_one : leaves_nothing {
  replaces_one() { test::put(in().at("r"), "old"); }
  part<By> run() {
    co_await weft::replace_file(in().at("r"), "new");
    require(test::text_in(in().at("r")) == "new", "it is the old one still");
  }
  void check() const {
    leaves_nothing::check();
    const std::string text = test::text_in(in().at("r"));
    require(text == "old" || text == "new", "a part was seen");
  }
};
TEST(sweep, replace_file) { sweep_both<replaces_one>("replace_file", waits); }

}  // namespace
