// Spans for opentelemetry-cpp, which exports them: a request that forks, hops to a pool and calls another service, as one trace.
//
// That library finds the span around the code that runs in a thread's variable. A task is not of one thread, so here that span
// is weft's local, current_trace, and is given to each new span as its parent. A span's object lies in the frame of the task
// that does its work, and so ends with that, also where the task fails or is stopped.
#include <opentelemetry/exporters/memory/in_memory_span_data.h>
#include <opentelemetry/exporters/memory/in_memory_span_exporter_factory.h>
#include <opentelemetry/sdk/trace/processor.h>
#include <opentelemetry/sdk/trace/simple_processor_factory.h>
#include <opentelemetry/sdk/trace/span_data.h>
#include <opentelemetry/sdk/trace/tracer_provider.h>
#include <opentelemetry/sdk/trace/tracer_provider_factory.h>
#include <opentelemetry/trace/provider.h>
#include <opentelemetry/trace/span.h>
#include <opentelemetry/trace/span_context.h>
#include <opentelemetry/trace/span_startoptions.h>
#include <opentelemetry/trace/tracer.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

namespace w = weft;
namespace otel = opentelemetry;

// ---- between the two libraries --------------------------------------------------------------------------------------------

otel::trace::SpanContext to_span_context(const w::trace_context& from, bool is_remote) {
  std::uint8_t trace[16], span[8];
  std::memcpy(trace, from.trace_id.data(), sizeof trace);
  std::memcpy(span, from.span_id.data(), sizeof span);
  const auto flags = static_cast<std::uint8_t>(from.is_sampled ? otel::trace::TraceFlags::kIsSampled : 0);
  return {otel::trace::TraceId{trace}, otel::trace::SpanId{span}, otel::trace::TraceFlags{flags}, is_remote};
}

w::trace_context to_trace_context(const otel::trace::SpanContext& from) {
  w::trace_context to;
  std::memcpy(to.trace_id.data(), from.trace_id().Id().data(), to.trace_id.size());
  std::memcpy(to.span_id.data(), from.span_id().Id().data(), to.span_id.size());
  to.is_sampled = from.IsSampled();
  return to;
}

// The span of some work: begins with its frame and ends with it.
class span {
 public:
  explicit span(const char* name, const w::trace_context& parent = *w::current_trace, bool is_remote = false) {
    otel::trace::StartSpanOptions options;
    if (parent.is_valid()) options.parent = to_span_context(parent, is_remote);
    its_ = otel::trace::Provider::GetTracerProvider()->GetTracer("weft-example")->StartSpan(name, options);
  }
  span(const span&) = delete;
  ~span() {
    if (w::this_task::is_ending_stopped()) its_->SetStatus(otel::trace::StatusCode::kError, "stopped");
    its_->End();
  }
  w::trace_context context() const { return to_trace_context(its_->GetContext()); }

 private:
  otel::nostd::shared_ptr<otel::trace::Span> its_;
};

// Runs `work` in a span of its own, which all spans below it have for their parent.
template <class F>
w::task<> in_span(const char* name, F work) {
  const span here{name};
  co_await w::with_local(w::current_trace, here.context(), std::move(work));
}

// ---- a program ------------------------------------------------------------------------------------------------------------

w::pool workers{{.threads = 2}};

w::task<> compute() {
  co_await w::resume_on(workers);  // the trace comes along
  const span here{"compute"};
}

w::task<> load() {
  const span here{"load"};
  co_await w::yield();
}

w::task<> wait_for_ever() {
  const span here{"wait"};
  w::event never;
  co_await never.wait();
}

// What the other service would find in its headers.
w::task<> call_other_service(std::string traceparent) {
  const auto caller = w::trace_context::parse(traceparent);
  const span here{"served elsewhere", caller.value_or(w::trace_context{}), true};
  co_return;
}

w::task<> answer() {
  const auto body = [](w::scope& s) -> w::task<> {
    s.fork(in_span("first half", load));
    s.fork(in_span("second half", compute));
    auto patience = s.fork(wait_for_ever());
    co_await w::yield();
    patience.request_stop({.reason = "nobody wants it any more"});
  };
  co_await w::with_scope(body);
  co_await call_other_service(w::current_trace->to_string());
}

// ---- what was exported ----------------------------------------------------------------------------------------------------

using recorded = std::vector<std::unique_ptr<otel::sdk::trace::SpanData>>;

void print_below(const recorded& all, otel::trace::SpanId parent, int depth) {
  std::vector<std::string> lines;
  std::vector<const otel::sdk::trace::SpanData*> below;
  for (const auto& one : all)
    if (one->GetParentSpanId() == parent) below.push_back(one.get());
  std::sort(below.begin(), below.end(), [](const auto* a, const auto* b) { return a->GetName() < b->GetName(); });
  for (const auto* one : below) {
    const bool failed = one->GetStatus() == otel::trace::StatusCode::kError;
    std::printf("%*s%s%s%s\n", 2 * depth, "", std::string{one->GetName()}.c_str(), failed ? ": " : "",
                failed ? std::string{one->GetDescription()}.c_str() : "");
    print_below(all, one->GetSpanId(), depth + 1);
  }
}

int main() {
  std::shared_ptr<otel::exporter::memory::InMemorySpanData> kept;
  auto exporter = otel::exporter::memory::InMemorySpanExporterFactory::Create(kept);
  auto processor = otel::sdk::trace::SimpleSpanProcessorFactory::Create(std::move(exporter));
  std::shared_ptr<otel::trace::TracerProvider> provider =
      otel::sdk::trace::TracerProviderFactory::Create(std::move(processor));
  otel::trace::Provider::SetTracerProvider(otel::nostd::shared_ptr<otel::trace::TracerProvider>{std::move(provider)});

  w::sync_wait(in_span("request", answer));

  const recorded all = kept->GetSpans();
  const bool is_one_trace = std::all_of(
      all.begin(), all.end(), [&](const auto& one) { return one->GetTraceId() == all.front()->GetTraceId(); });
  std::printf("%zu spans of %s\n", all.size(), is_one_trace ? "one trace" : "several traces");
  print_below(all, {}, 0);
}
