// async_simple's executor of several threads. Part of adapters.
#pragma once

#include <async_simple/Executor.h>
#include <async_simple/util/ThreadPool.h>
#include <cstddef>
#include <utility>

namespace bench {

/// Its SimpleExecutor without the part that needs libaio.
class async_simple_executor final : public async_simple::Executor {
 public:
  explicit async_simple_executor(std::size_t threads) : pool_{threads} {}
  bool schedule(Func work) override {
    return pool_.scheduleById(std::move(work)) == async_simple::util::ThreadPool::ERROR_NONE;
  }
  bool currentThreadInExecutor() const override { return pool_.getCurrentId() != -1; }
  async_simple::ExecutorStat stat() const override { return {}; }
  async_simple::IOExecutor* getIOExecutor() override { return nullptr; }

 private:
  async_simple::util::ThreadPool pool_;
};

}  // namespace bench
