// The sweep of stops. A first run, without a stop, counts the places where a stop could come; then there is a run for each
// place.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>
#include <weft/observe.hpp>
#include <weft/test.hpp>

#include "test/announce.hpp"
#include "test/world.hpp"

namespace weft::test::detail {
namespace {

// "step/late/alone/later/3.2": the place of a stop, as WEFT_SWEEP takes it.
std::string text_of(const stop_plan& plan, bool resumes_inline) {
  const std::string how = resumes_inline ? "inline" : "later";
  if (plan.index == 0) return "none/" + how;
  std::string text = std::string{name_of(plan.where)} + "/" + name_of(plan.who) + (plan.alone ? "/alone/" : "/all/") +
                     how + "/" + std::to_string(plan.index);
  if (plan.which != 0) text += "." + std::to_string(plan.which);
  return text;
}

std::string in_words(const stop_plan& plan, bool resumes_inline) {
  std::string text;
  const std::string nth = std::to_string(plan.index);
  if (plan.index == 0) {
    text = "run without a stop";
  } else {
    text = plan.alone ? "one task alone is stopped" : "stopped";
    switch (plan.where) {
      case place::before: text += " just before wait " + nth; break;
      case place::inside: text += " inside of wait " + nth + ", before it could be found"; break;
      case place::woken: text += " at wake-up " + nth + ", when the wait was over"; break;
      case place::step: text += " before step " + nth + " of the executor and the clock"; break;
    }
    switch (plan.who) {
      case by::same_thread: text += ", from the same thread"; break;
      case by::other_thread: text += ", from another thread"; break;
      case by::late_thread: text += ", from another thread, which removes the waiter only after that step"; break;
    }
  }
  return text + (resumes_inline ? ", tasks resume where they are woken" : ", tasks resume on their executor");
}

class sweep {
 public:
  sweep(std::string_view name, subject& what, const sweep_options& options)
      : name_{name}, what_{what}, options_{options} {
    if (const char* only = std::getenv("WEFT_SWEEP")) only_ = only;
    trace_ = std::getenv("WEFT_SWEEP_TRACE") != nullptr;
    if (options.other_thread) other_ = std::make_unique<stopper>();
  }
  sweep(const sweep&) = delete;

  sweep_report all() {
    all_that_resumes(false);
    if (options_.inline_completion) all_that_resumes(true);
    if (report_.awaits == 0)
      throw failure{"cancellation_sweep(" + name_ + "): nothing awaits here, so nothing was swept"};
    std::printf("weft: cancellation sweep of %s: %zu awaits, %zu runs\n", name_.c_str(), report_.awaits, report_.runs);
    std::fflush(stdout);
    return report_;
  }

 private:
  void all_that_resumes(bool where_woken) {
    inline_ = where_woken;
    const world_findings calm = run({});
    report_.awaits = std::max(report_.awaits, calm.awaits);
    using enum place;
    const auto count = [&](place where) { return calm.seen[static_cast<std::size_t>(where)]; };
    for (std::size_t i = 1; i <= count(before); ++i) {
      run({before, by::same_thread, i});
      run({before, by::same_thread, i, true});
      from_other({before, by::other_thread, i});
    }
    for (std::size_t i = 1; i <= count(inside); ++i) {
      from_other({inside, by::other_thread, i});
      from_other({inside, by::other_thread, i, true});
    }
    for (std::size_t i = 1; i <= count(woken); ++i) {
      run({woken, by::same_thread, i});
      run({woken, by::same_thread, i, true});
      from_other({woken, by::other_thread, i});
    }
    for (std::size_t i = 1; i <= count(step); ++i) {
      run({step, by::same_thread, i});
      from_other({step, by::other_thread, i});
      for (std::size_t which = 1; which <= calm.waiting[i - 1]; ++which) {
        run({step, by::same_thread, i, true, which});
        from_other({step, by::other_thread, i, true, which});
        from_other({step, by::late_thread, i, false, which});
        from_other({step, by::late_thread, i, true, which});
      }
    }
  }

  void from_other(const stop_plan& plan) {
    if (other_ != nullptr) run(plan);
  }

  world_findings run(const stop_plan& plan) {
    if (plan.alone && !options_.each_alone) return {};
    const std::string text = text_of(plan, inline_), place = name_ + ": " + text;
    if (plan.index != 0 && !only_.empty() && only_ != text) return {};
    if (trace_) std::fprintf(stderr, "weft: sweep of %s\n", place.c_str());
    const announced told{place};
    ++report_.runs;
    auto here = std::make_unique<world>(world_options{.seed = options_.seed,
                                                      .io = options_.io,
                                                      .patience = options_.patience,
                                                      .stop_when_idle = options_.stop_when_idle,
                                                      .resumes_inline = inline_,
                                                      .plan = plan,
                                                      .other = plan.who != by::same_thread ? other_.get() : nullptr});
    const bool ended = here->run(what_);
    const world_findings found = here->findings();
    const auto fails = [&](const std::string& how) {
      std::string report = "cancellation_sweep(" + name_ + "), " + in_words(plan, inline_) + ":\n" + how;
      if (!report.ends_with('\n')) report += '\n';
      if (!found.stopped_in.empty())
        report += "the task that the stop found, or that ran when it came:\n" + to_string(found.stopped_in);
      return failure{report + "WEFT_SWEEP=" + text + " runs this one alone"};
    };

    if (!ended) {
      const std::string waits = here->what_waits();
      world::abandon(std::move(here), what_);
      throw fails("it hangs: nothing can run and no timer is armed\n" + waits);
    }
    std::exception_ptr broken = nullptr;
    try {
      judge(plan, fails);
    } catch (...) {
      broken = std::current_exception();
    }
    end_run(std::move(here), what_, broken, fails);
    return found;
  }

  // The scenario is still alive here.
  template <class Fails>
  void judge(const stop_plan& plan, const Fails& fails) {
    bool looked_at_outcome = false;
    try {
      looked_at_outcome = what_.check();
    } catch (const std::exception& e) {
      throw fails(std::string{"its check fails: "} + e.what());
    } catch (...) {
      std::fprintf(stderr, "%s\n", fails("its check fails").what());
      throw;  // an exception of the test framework
    }
    const std::exception_ptr thrown = what_.thrown();
    if (looked_at_outcome || !thrown || (options_.may_throw && plan.index != 0)) return;
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      throw fails(std::string{"it throws: "} + e.what());
    } catch (...) {
      std::fprintf(stderr, "%s\n", fails("it throws").what());
      throw;
    }
  }

  const std::string name_;
  subject& what_;
  const sweep_options options_;
  std::string only_;
  bool trace_ = false;
  bool inline_ = false;
  std::unique_ptr<stopper> other_;
  sweep_report report_;
};

}  // namespace

sweep_report sweep_stops(std::string_view name, subject& what, const sweep_options& options) {
  return sweep{name, what, options}.all();
}

}  // namespace weft::test::detail
