#include "executor/archive/archives.h"

#include <utility>

#include "libs/archives/compression.h"

namespace executor {

Archives::Archives(aio::Executor executor, std::shared_ptr<Stagings> stagings)
    : executor_(std::move(executor)), stagings_(std::move(stagings)), threads_(kAtOnceMax) {}

Archives::~Archives() {
  for (const auto& one : at_work_)
    if (const auto pipe = one.lock()) pipe->break_off();
}

std::shared_ptr<Pipe> Archives::join() {
  std::erase_if(at_work_, [](const auto& one) { return one.expired(); });
  if (at_work_.size() >= kAtOnceMax) return nullptr;
  auto pipe = std::make_shared<Pipe>(executor_);
  at_work_.push_back(pipe);
  return pipe;
}

aio::Task<ArchiveResult<archives::Report>> Archives::create(std::shared_ptr<Pipe> pipe,
                                                            std::string key, CreateRequest request,
                                                            Tell tell, std::stop_token abort) {
  auto work = [&pipe, &key, &request, &tell, &abort]() -> ArchiveResult<archives::Report> {
    const archives::Sink sink = [&pipe](std::string_view bytes) -> archives::Result<base::Done> {
      if (pipe->put(bytes)) return base::Done{};
      return archives::cancelled();
    };
    auto report = create_archive(key, request, sink, abort);
    if (report) static_cast<void>(sink(archives::trailer_frame(tell(*report))));
    if (report)
      pipe->end();
    else
      pipe->break_off();
    return report;
  };
  co_return co_await threads_.run(std::move(work));
}

aio::Task<ArchiveResult<Extracted>> Archives::extract(std::shared_ptr<Pipe> pipe, std::string key,
                                                      ExtractRequest request,
                                                      std::stop_token abort) {
  auto work = [this, &pipe, &key, &request, &abort]() -> ArchiveResult<Extracted> {
    const archives::Source source = [&pipe]() -> archives::Result<std::string> {
      if (auto bytes = pipe->get()) return *std::move(bytes);
      return archives::cancelled();
    };
    auto extracted = extract_archive(*stagings_, key, request, source, abort);
    pipe->break_off();  // Nobody reads on.
    return extracted;
  };
  co_return co_await threads_.run(std::move(work));
}

}  // namespace executor
