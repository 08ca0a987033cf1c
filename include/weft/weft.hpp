// All of weft but what is a target of its own (TLS, hooks, the test kit) and adapters to other libraries.
#pragma once

#include <weft/batcher.hpp>
#include <weft/blocking.hpp>
#include <weft/channel.hpp>
#include <weft/clock.hpp>
#include <weft/combine.hpp>
#include <weft/env.hpp>
#include <weft/error.hpp>
#include <weft/executor.hpp>
#include <weft/executor_set.hpp>
#include <weft/fiber.hpp>
#include <weft/future.hpp>
#include <weft/generator.hpp>
#include <weft/observe.hpp>
#include <weft/parallel.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/sequence.hpp>
#include <weft/stop.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>
#include <weft/version.hpp>
