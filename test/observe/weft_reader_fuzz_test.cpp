// The reader of core files gets damaged ones: of this very process, with tasks that wait, in which some bytes are others. It
// may find less, or say what is wrong, but never reads where nothing is, and always ends.
#include <elf.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/race.hpp>
#include <weft/recording.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>
#include <weft/traced.hpp>

#include "memory.hpp"
#include "observe/recording_format.hpp"
#include "recording_of.hpp"
#include "report.hpp"
#include "support/fuzz.hpp"
#include "target.hpp"
#include "tasks.hpp"
#include "trace/event_ring.hpp"
#include "unwind.hpp"

namespace {

using namespace std::chrono_literals;
using weft::scope;
using weft::task;

weft::event& never = *new weft::event;  // not destroyed: tasks wait when the program ends
weft::mutex &left = *new weft::mutex, &right = *new weft::mutex;
weft::latch& both = *new weft::latch{2};
weft::channel<int>& numbers = *new weft::channel<int>{0};

task<int> inner() {
  co_await never.wait();
  co_return 1;
}
task<> transfer(weft::mutex& from, weft::mutex& to) {
  const auto first = co_await from.lock();
  co_await both.arrive_and_wait();
  const auto second = co_await to.lock();
}
task<> tree() {
  auto body = [](scope& s) -> task<> {
    for (int i = 0; i != 20; ++i) s.fork(inner());
    s.fork(transfer(left, right));
    s.fork(transfer(right, left));
    s.fork([]() -> task<> { static_cast<void>(co_await weft::when_all(inner(), inner())); }());
    s.fork([]() -> task<> { static_cast<void>(co_await weft::when_any(inner(), inner())); }());
    s.fork([]() -> task<> {
      static_cast<void>(co_await weft::select(weft::on_receive(numbers), weft::on(left.lock()), weft::after(1h)));
    }());
    s.fork([]() -> task<> {
      std::vector<weft::any_case> all;
      all.emplace_back(weft::on_receive(numbers), [](std::optional<int>) {});
      all.emplace_back(weft::on(never.wait()), [] {});
      static_cast<void>(co_await weft::select(std::move(all)));
    }());
    co_await never.wait();
  };
  co_await weft::with_scope(body);
}
constexpr std::size_t tasks_of_tree = 1 + 1 + 26 + 4, tasks_that_run = 1;

// ---- a core file of this process -------------------------------------------------------------------------------------------

struct part {
  std::uint64_t begin, end, offset;
  std::string path;
};

void put(std::vector<std::byte>& into, const void* what, std::size_t bytes) {
  const auto* const from = static_cast<const std::byte*>(what);
  into.insert(into.end(), from, from + bytes);
}
void put_note(std::vector<std::byte>& into, std::uint32_t type, const std::vector<std::byte>& content) {
  const Elf64_Nhdr head{5, static_cast<std::uint32_t>(content.size()), type};
  put(into, &head, sizeof head);
  put(into, "CORE\0\0\0", 8);
  put(into, content.data(), content.size());
  into.resize((into.size() + 3) / 4 * 4);
}

struct image {
  std::vector<std::byte> bytes;
  std::vector<std::pair<std::size_t, std::size_t>> parts;  // where what can be damaged lies: head, notes, memory
};

// As the file of this program says.
std::uint16_t machine_of_this() {
  Elf64_Ehdr head{};
  std::ifstream{"/proc/self/exe", std::ios::binary}.read(reinterpret_cast<char*>(&head), sizeof head);
  return head.e_machine;
}

// This thread's, as the kernel writes them into a core file; zeros where that is not known here.
void put_registers(std::vector<std::byte>& status) {
  const int thread = ::gettid();
  std::memcpy(status.data() + 32, &thread, sizeof thread);
#if defined(__x86_64__)
  ucontext_t here;
  if (::getcontext(&here) != 0) return;
  // r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp
  constexpr int order[] = {REG_R15, REG_R14, REG_R13, REG_R12, REG_RBP, REG_RBX, REG_R11, REG_R10, REG_R9,  REG_R8,
                           REG_RAX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RAX, REG_RIP, REG_EFL, REG_EFL, REG_RSP};
  for (std::size_t i = 0; i != std::size(order); ++i)
    std::memcpy(status.data() + 112 + i * 8, &here.uc_mcontext.gregs[order[i]], 8);
#endif
}

// `program` is where the files of modules are said to lie. With its own, functions are found in it, and calls.
[[gnu::noinline]] image make_core(const std::string& program) {
  std::vector<part> parts;
  std::ifstream maps{"/proc/self/maps"};
  std::string exe;
  for (std::string line; std::getline(maps, line);) {
    part one{};
    char rights[5]{};
    int path = 0;
    unsigned long long begin, end, offset;
    if (std::sscanf(line.c_str(), "%llx-%llx %4s %llx %*s %*s %n", &begin, &end, rights, &offset, &path) < 4) continue;
    one = {begin, end, offset, path != 0 ? line.substr(static_cast<std::size_t>(path)) : std::string{}};
    if (exe.empty()) exe = one.path;
    const bool is_code = rights[2] == 'x', is_data = rights[1] == 'w' && rights[3] == 'p';
#if defined(WEFT_LIBFUZZER)
    constexpr std::uint64_t most = 64 << 20;
#elif defined(WEFT_TEST_ASAN)
    constexpr std::uint64_t most = 16 << 20;  // its runtime has that much of its own beside the data of the program
#else
    constexpr std::uint64_t most = 8 << 20;
#endif
    if (rights[0] != 'r' || is_code || end - begin > most || line.find("[v") != line.npos) continue;
    if (one.path == exe || (is_data && (one.path.empty() || one.path.front() == '['))) parts.push_back(one);
  }
  image made;
  std::vector<std::byte> status(112 + 27 * 8), files, notes;
  put_registers(status);
  std::uint64_t count = 0;
  for (const part& one : parts) count += one.path == exe;
  const std::uint64_t page = 1;
  put(files, &count, 8);
  put(files, &page, 8);
  for (const part& one : parts)
    if (one.path == exe) {
      put(files, &one.begin, 8);
      put(files, &one.end, 8);
      put(files, &one.offset, 8);
    }
  for (std::uint64_t i = 0; i != count; ++i) put(files, program.c_str(), program.size() + 1);
  put_note(notes, NT_PRSTATUS, status);
  put_note(notes, NT_FILE, files);

  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_type = ET_CORE;
  head.e_machine = machine_of_this();
  head.e_phoff = sizeof head;
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = static_cast<std::uint16_t>(parts.size() + 1);
  put(made.bytes, &head, sizeof head);
  std::uint64_t at = sizeof head + (parts.size() + 1) * sizeof(Elf64_Phdr);
  Elf64_Phdr of_notes{};
  of_notes.p_type = PT_NOTE;
  of_notes.p_align = 4;
  of_notes.p_offset = at;
  of_notes.p_filesz = notes.size();
  put(made.bytes, &of_notes, sizeof of_notes);
  at += notes.size();
  for (const part& one : parts) {
    Elf64_Phdr load{};
    load.p_type = PT_LOAD;
    load.p_offset = at;
    load.p_vaddr = one.begin;
    load.p_filesz = load.p_memsz = one.end - one.begin;
    put(made.bytes, &load, sizeof load);
    at += load.p_filesz;
  }
  made.parts.emplace_back(0, made.bytes.size());
  made.parts.emplace_back(made.bytes.size(), notes.size());
  put(made.bytes, notes.data(), notes.size());
  std::ifstream memory{"/proc/self/mem", std::ios::binary};
  for (const part& one : parts) {
    std::vector<char> content(one.end - one.begin);
    memory.clear();
    memory.seekg(static_cast<std::streamoff>(one.begin));
    memory.read(content.data(), static_cast<std::streamsize>(content.size()));
    made.parts.emplace_back(made.bytes.size(), content.size());
    put(made.bytes, content.data(), content.size());
  }
  return made;
}

// Made by a task, so that one runs.
task<image> makes_core(std::string program) { co_return make_core(program); }

image core_with(const std::string& program) {
  static const bool has_begun = [] {
    auto request = []() -> task<> { co_return; };
    weft::sync_wait(weft::with_trace({.name = "a request"}, request));  // for the flight recorder
    weft::start(tree(), [](weft::result<void>) {});
    return true;
  }();
  static_cast<void>(has_begun);
  return weft::sync_wait(makes_core(program));
}
image& core_of_this() {
  static image made = core_with("/nowhere/program");
  return made;
}
image& core_with_its_file() {
  static image made = core_with("/proc/self/exe");
  return made;
}

std::size_t tasks_in(std::span<const std::byte> core) {
  try {
    const auto from = weft_tool::open_core_bytes(core);
    const weft_tool::tasks_seen all = weft_tool::look_at(*from);
    std::ostringstream text;
    weft_tool::write_json(text, all, *from);
    weft_tool::write_text(text, all, *from);
    return all.tasks.size();
  } catch (const weft_tool::problem& what) {
    test::must(*what.what() != '\0', "a problem without a sentence");
    return 0;
  }
}

// What of it is no problem is a recording that can be read.
std::size_t events_in(std::span<const std::byte> core) {
  try {
    const auto from = weft_tool::open_core_bytes(core);
    const weft_tool::recorded made = weft_tool::recording_of(*from);
    const weft::recording all = weft::recording::parse(made.file);
    test::must(all.is_whole(), "a recording that is not whole");
    std::ostringstream text;
    all.write_chrome_trace(text);
    return all.events().size();
  } catch (const weft_tool::problem& what) {
    test::must(*what.what() != '\0', "a problem without a sentence");
    return 0;
  }
}

// Where the bytes of an address lie in a core file.
std::size_t place_of(const void* address, std::span<const std::byte> core) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  Elf64_Ehdr head;
  std::memcpy(&head, core.data(), sizeof head);
  for (std::size_t i = 0; i != head.e_phnum; ++i) {
    Elf64_Phdr one;
    std::memcpy(&one, core.data() + head.e_phoff + i * sizeof one, sizeof one);
    if (one.p_type == PT_LOAD && one.p_vaddr <= at && at - one.p_vaddr < one.p_filesz)
      return one.p_offset + (at - one.p_vaddr);
  }
  return 0;
}

#if !defined(WEFT_LIBFUZZER)

TEST(weft_reader, finds_all_in_a_core_file_that_is_whole) {
  EXPECT_EQ(tasks_in(core_of_this().bytes), tasks_of_tree + tasks_that_run);
  EXPECT_GT(events_in(core_of_this().bytes), 0U);
  const auto from = weft_tool::open_core_bytes(core_of_this().bytes);
  std::multiset<std::size_t> cases;
  const weft_tool::tasks_seen all = weft_tool::look_at(*from);
  for (const weft_tool::task_seen& one : all.tasks) cases.insert(one.waits.size());
  EXPECT_EQ(cases.count(3), 1U) << "a select of three";
  EXPECT_EQ(cases.count(2), 1U) << "and one of cases without their types";
}

// What those are in that run, by name.
std::vector<std::string> calls_of_running(std::span<const std::byte> core) {
  const auto from = weft_tool::open_core_bytes(core);
  std::vector<std::string> calls;
  const weft_tool::tasks_seen all = weft_tool::look_at(*from);
  for (const weft_tool::task_seen& one : all.tasks)
    if (one.state == weft_tool::task_state::running)
      for (const weft_tool::address code : one.stack) calls.push_back(from->name_of(code));
  return calls;
}

TEST(weft_reader, finds_what_the_one_is_in_that_runs) {
  const std::vector<std::string> calls = calls_of_running(core_with_its_file().bytes);
  const auto place_of_call = [&](std::string_view name) {
    return std::ranges::find_if(calls, [&](const std::string& one) { return one.find(name) != one.npos; }) -
           calls.begin();
  };
  const auto end = std::ssize(calls);
  EXPECT_LT(place_of_call("makes_core("), end) << "the coroutine";
#if defined(__x86_64__)
  EXPECT_LT(place_of_call("make_core("), place_of_call("makes_core(")) << "the function that it calls";
#endif
  EXPECT_FALSE(calls_of_running(core_of_this().bytes).empty()) << "without the file, the coroutine alone";
}

weft::detail::file_header header_of(std::span<const std::byte> core) {
  const auto from = weft_tool::open_core_bytes(core);
  weft::detail::file_header head;
  std::memcpy(&head, weft_tool::recording_of(*from).file.data(), sizeof head);
  return head;
}

// Where the system has begun anew since, its clocks say nothing of the process's stamps.
TEST(weft_reader, takes_the_time_from_the_process_where_the_system_is_another_one) {
  std::vector<std::byte> core = core_of_this().bytes;
  const weft::detail::stamp_pair& first = weft::detail::first_stamp();
  const weft::detail::event_ring* const newest = weft::detail::newest_ring();
  ASSERT_NE(newest, nullptr);
  const auto here = header_of(core);
  EXPECT_EQ(here.began.stamp, first.stamp);
  EXPECT_EQ(here.began.steady, first.steady);
  EXPECT_GT(here.written.stamp, newest->made.stamp);

  const std::size_t real_at = place_of(&first.real, core), made_at = place_of(&newest->made, core);
  ASSERT_NE(real_at, 0U);
  ASSERT_NE(made_at, 0U);
  const std::uint64_t other_day = first.real - 86'400'000'000'000;
  std::memcpy(core.data() + real_at, &other_day, sizeof other_day);
  const auto there = header_of(core);
  EXPECT_EQ(there.written.stamp, newest->made.stamp);
  EXPECT_EQ(there.written.steady, newest->made.steady);

  const weft::detail::stamp_pair none{};  // as where that ring was written over
  std::memcpy(core.data() + made_at, &none, sizeof none);
  EXPECT_NO_THROW(events_in(core));
}

TEST(weft_reader, refuses_a_core_file_of_another_machine) {
  std::vector<std::byte> other = core_of_this().bytes;
  const std::uint16_t machine = machine_of_this() == EM_RISCV ? EM_X86_64 : EM_RISCV;
  std::memcpy(other.data() + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof machine);
  try {
    weft_tool::open_core_bytes(other);
    ADD_FAILURE() << "it was taken";
  } catch (const weft_tool::problem& what) {
    EXPECT_NE(std::string_view{what.what()}.find("not of this machine"), std::string_view::npos) << what.what();
  }
}

TEST(weft_reader, survives_a_file_that_ends_anywhere) {
  const std::span<const std::byte> whole{core_of_this().bytes};
  for (std::size_t bytes = 0; bytes < 4096 && bytes < whole.size(); bytes += 7) tasks_in(whole.first(bytes));
  for (std::size_t part = 1; part != 20; ++part) {
    tasks_in(whole.first(whole.size() / 20 * part));
    events_in(whole.first(whole.size() / 20 * part));
  }
}

#endif

// Words that a reader follows: where a task lies, and what lies near; and those of a ring of the flight recorder.
std::vector<std::size_t> places_of_interest(const image& core) {
  std::vector<std::size_t> places;
  const auto from = weft_tool::open_core_bytes(core.bytes);
  const weft_tool::tasks_seen all = weft_tool::look_at(*from);
  for (const weft_tool::task_seen& one : all.tasks)
    for (const auto& [begin, bytes] : core.parts) {
      std::uint64_t word;
      for (std::size_t at = begin; at + 8 <= begin + bytes; at += 8) {
        std::memcpy(&word, core.bytes.data() + at, sizeof word);
        if (word >= one.at && word < one.at + 512) places.push_back(at);
      }
    }
  if (const std::size_t ring = place_of(weft::detail::newest_ring(), core.bytes); ring != 0)
    for (std::size_t at = 0; at < sizeof(weft::detail::event_ring) + 256; at += 8) places.push_back(ring + at);
  return places;
}

// Changes some bytes of the file while `look` is called: of those places, and of anything near its begin.
template <class Choices, class Look>
void look_at_damaged(image& core, const std::vector<std::size_t>& interesting, Choices& chosen, Look look) {
  test::must(!interesting.empty(), "the core file has no tasks in it");
  struct change {
    std::size_t at;
    std::byte was;
  };
  std::vector<change> changes;
  const auto number = [&] { return chosen.up_to(255) | chosen.up_to(255) << 8 | chosen.up_to(255) << 16; };
  do {
    std::size_t at;
    if (chosen.one_in(3)) {
      const auto& [begin, bytes] = core.parts[chosen.up_to(std::min<std::size_t>(core.parts.size() - 1, 3))];
      at = begin + number() % bytes;
    } else {
      at = interesting[number() % interesting.size()] + chosen.up_to(7);
    }
    changes.push_back({at, core.bytes[at]});
    core.bytes[at] = static_cast<std::byte>(chosen.up_to(255));
  } while (chosen.are_left());
  const auto undo = [&] {
    for (auto one = changes.rbegin(); one != changes.rend(); ++one) core.bytes[one->at] = one->was;
  };
  try {
    look(core.bytes);
  } catch (...) {
    undo();
    throw;
  }
  undo();
}

// The registers of the thread, its stack from there on, and the frames of the task that it runs.
std::vector<std::size_t> places_of_calls(const image& core) {
  std::vector<std::size_t> places;
  const auto& [notes, bytes] = core.parts[1];
  for (std::size_t at = 0; at < std::min<std::size_t>(bytes, 112 + 27 * 8 + 20); at += 8) places.push_back(notes + at);
  const auto from = weft_tool::open_core_bytes(core.bytes);
  for (const weft_tool::thread_seen& one : from->threads())
    if (const std::size_t at =
            place_of(reinterpret_cast<const void*>(weft_tool::stack_pointer_of(one.regs)), core.bytes);
        at != 0)
      for (std::size_t next = at; next < std::min(at + 4096, core.bytes.size() - 8); next += 8) places.push_back(next);
  const weft_tool::tasks_seen all = weft_tool::look_at(*from);
  for (const weft_tool::task_seen& one : all.tasks)
    if (one.state == weft_tool::task_state::running)
      for (const weft_tool::address frame : one.frames)
        if (const std::size_t at = place_of(reinterpret_cast<const void*>(frame), core.bytes); at != 0)
          for (std::size_t next = at; next != at + 64; next += 8) places.push_back(next);
  return places;
}

WEFT_FUZZ(core_files, 1000, 24) {
  static const auto words = places_of_interest(core_of_this());
  static const auto calls = places_of_calls(core_with_its_file());
  if (chosen.one_in(4))
    return look_at_damaged(core_with_its_file(), calls, chosen,
                           [](std::span<const std::byte> core) { tasks_in(core); });
  look_at_damaged(core_of_this(), words, chosen, [](std::span<const std::byte> core) {
    tasks_in(core);
    events_in(core);
  });
}

}  // namespace
