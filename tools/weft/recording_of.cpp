// The threads of a process that runs go on writing into the rings that are read here. So the protocol is that of
// src/trace/event_ring.hpp: read `next`, copy, read `next` again, and leave out what may have been written over meanwhile.
//
// As with all that is read from outside, nothing is trusted: a ring is visited once, and there is a most for their number and
// their size.
#include "recording_of.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <weft/recorded_event.hpp>

#include "fields.hpp"
#include "memory.hpp"
#include "observe/recording_format.hpp"
#include "stamps.hpp"
#include "target.hpp"

namespace weft_tool {
namespace {

using weft::event_kind;
using weft::recorded_event;
using weft::detail::file_header;
using weft::detail::named;
using weft::detail::ring_part;
using weft::detail::section;
using weft::detail::section_header;
using weft::detail::stamp_pair;

constexpr std::size_t most_rings = 1 << 16;
constexpr std::uint64_t fewest_places = 64, most_places = (std::uint64_t{1} << 30) / sizeof(recorded_event);
constexpr std::uint64_t events_at_once = 4096;  // of a ring that is written to, the fewer the less is lost

class recording_maker {
 public:
  explicit recording_maker(const target& of) : in_{of}, at_{of.memory()} {}

  recorded make() && {
    const std::vector<fields> all = fields_of(in_);
    begin_with_header(all);
    bool is_on = false;
    std::uint32_t number = 0;
    std::unordered_set<address> seen;
    for (const fields& f : all) {
      is_on |= at_.word(f["rings.bytes"]) != 0;
      for (address one = at_.word(f["rings"]); one != 0; one = at_.word(one + f["ring.made_before"])) {
        if (seen.size() == most_rings || !seen.insert(one).second) {
          made_.is_complete = false;
          break;
        }
        ring(f, one, number++);
      }
    }
    if (number == 0 && !is_on)
      throw problem{in_.what() + ": its flight recorder is switched off: it has called set_recorder_bytes(0)"};
    end_header(all);
    maps();
    begin(section::end, 0);
    return std::move(made_);
  }

 private:
  // ---- what a file has besides events

  void begin_with_header(const std::vector<fields>& all) {
    head_.process = static_cast<std::uint64_t>(in_.pid);
    for (const fields& f : all) {
      if (f["event.bytes"] != sizeof(recorded_event))
        throw problem{in_.what() + ": its flight recorder has events of " + std::to_string(f["event.bytes"]) +
                      " bytes, and this program knows those of " + std::to_string(sizeof(recorded_event)) +
                      ": they are of different versions"};
      const stamp_pair began = pair_at(at_, f, f["stamps.first"]);
      if (head_.began.stamp == 0 || began.stamp < head_.began.stamp) head_.began = began;
    }
    last_made_ = head_.began;
    put(&head_, sizeof head_);
  }

  // The second pair of a stamp and a time, from which follows how long a tick is.
  void end_header(const std::vector<fields>& all) {
    const stamp_pair now = pair_now(at_, all[0]);
    // The process of a core file may have run on another machine. Then what is known is when it made its newest ring.
    head_.written = in_.is_running() || are_of_one_run(head_.began, now) ? now : last_made_;
    std::memcpy(made_.file.data(), &head_, sizeof head_);
  }

  void maps() {
    std::string text;
    for (const mapping& one : in_.mappings()) {
      char numbers[96];
      std::snprintf(numbers, sizeof numbers, "%llx-%llx %c%c%c%c %08llx 00:00 0 ",
                    static_cast<unsigned long long>(one.begin), static_cast<unsigned long long>(one.end),
                    one.can_read ? 'r' : '-', one.can_write ? 'w' : '-', one.can_run ? 'x' : '-',
                    one.is_private ? 'p' : 's', static_cast<unsigned long long>(one.offset));
      text += numbers + one.path + '\n';
    }
    begin(section::maps, text.size());
    put(text.data(), text.size());
  }

  // ---- rings

  struct piece {
    std::uint64_t first;  // number in its ring
    std::vector<recorded_event> events;
  };

  // How many events were written: certainly, and perhaps. The kernel's copy of a number need not be of one moment, so it is read
  // twice.
  struct written {
    std::uint64_t surely, perhaps;
  };
  written written_at(address next) const {
    const std::uint64_t one = at_.word(next), other = at_.word(next);
    return {std::min(one, other), std::max(one, other)};
  }

  std::vector<piece> pieces_of(const fields& f, address ring) {
    const std::uint64_t mask = at_.word(ring + f["ring.mask"]);
    const address places = at_.word(ring + f["ring.events"]), next = ring + f["ring.next"];
    std::vector<piece> all;
    if (mask < fewest_places - 1 || mask >= most_places || (mask & (mask + 1)) != 0) {  // missing, or written over
      made_.is_complete = false;
      return all;
    }
    const auto oldest = [mask](std::uint64_t end) { return end > mask ? end - mask : 0; };
    const std::uint64_t end = written_at(next).surely;  // what comes later is left out, so this ends
    for (std::uint64_t from = oldest(end); from < end;) {
      const std::uint64_t count = std::min({end - from, events_at_once, mask + 1 - (from & mask)});
      piece some{from, std::vector<recorded_event>(static_cast<std::size_t>(count))};
      std::size_t got = at_.read(places + (from & mask) * sizeof(recorded_event), some.events.data(),
                                 some.events.size() * sizeof(recorded_event)) /
                        sizeof(recorded_event);
      if (got != count) made_.is_complete = false;
      if (got == 0) break;
      // Between the words that were read and `next`: the edge `lap` of event_ring.
      std::atomic_thread_fence(std::memory_order_seq_cst);
      const std::uint64_t gone = oldest(written_at(next).perhaps);
      const auto lost = static_cast<std::size_t>(std::min<std::uint64_t>(gone > from ? gone - from : 0, got));
      some.events.resize(got);
      some.events.erase(some.events.begin(), some.events.begin() + static_cast<std::ptrdiff_t>(lost));
      some.first += lost;
      if (!some.events.empty()) all.push_back(std::move(some));
      from = std::max(from + count, gone);
    }
    return all;
  }

  void ring(const fields& f, address at, std::uint32_t number) {
    if (const stamp_pair made = pair_at(at_, f, at + f["ring.made"]);
        made.stamp > last_made_.stamp && made.steady > last_made_.steady)
      last_made_ = made;
    std::uint32_t thread = at_.word<std::uint32_t>(at + f["ring.thread"]);
    const std::vector<piece> all = pieces_of(f, at);
    // Who has written the oldest events: who was there before the first one that says that it begins.
    const auto begins = [](const recorded_event& one) { return one.kind == event_kind::thread; };
    for (const piece& one : all)
      if (const auto first = std::ranges::find_if(one.events, begins); first != one.events.end()) {
        thread = static_cast<std::uint32_t>(first->first);
        break;
      }
    for (const piece& some : all)
      for (std::size_t i = 0; i != some.events.size();) {  // a section for each thread that had the ring
        std::size_t last = i;
        if (begins(some.events[i])) thread = some.events[i].number;
        do ++last;
        while (last != some.events.size() && !begins(some.events[last]));
        const ring_part part{.thread = thread, .ring = number, .first = some.first + i};
        begin(section::events, sizeof part + (last - i) * sizeof(recorded_event));
        put(&part, sizeof part);
        put(&some.events[i], (last - i) * sizeof(recorded_event));
        name_thread(thread);
        for (; i != last; ++i) explain(some.events[i]);
      }
  }

  // ---- what events refer to

  void explain(const recorded_event& one) {
    if (one.second == 0) return;
    const named what = weft::detail::named_by(one.kind);
    if (what == named::text && texts_.insert(one.second).second)
      tell(section::text, one.second, at_.text(one.second, weft::detail::longest_text));
    if (what == named::function && functions_.insert(one.second).second)
      tell(section::name, one.second, in_.name_of(one.second));
  }

  void name_thread(std::uint32_t number) {
    if (!named_threads_.insert(number).second) return;
    const auto known = std::ranges::find(in_.threads(), static_cast<int>(number), &thread_seen::id);
    if (known != in_.threads().end() && !known->name.empty()) tell(section::thread, number, known->name);
  }

  void tell(section kind, std::uint64_t of, std::string_view text) {
    begin(kind, sizeof of + text.size());
    put(&of, sizeof of);
    put(text.data(), text.size());
  }

  void begin(section kind, std::size_t size) {
    const section_header head{.kind = static_cast<std::uint32_t>(kind), .size = size};
    put(&head, sizeof head);
  }
  void put(const void* what, std::size_t size) {
    const auto* const bytes = static_cast<const std::byte*>(what);
    made_.file.insert(made_.file.end(), bytes, bytes + size);
  }

  const target& in_;
  const memory& at_;
  file_header head_;
  stamp_pair last_made_;
  recorded made_;
  std::unordered_set<std::uint64_t> texts_, functions_;
  std::unordered_set<std::uint32_t> named_threads_;
};

}  // namespace

recorded recording_of(const target& in) { return recording_maker{in}.make(); }

}  // namespace weft_tool
