#pragma once

#include <memory>

#include "agentd/dial/names.h"
#include "agentd/way/directory.h"
#include "agentd/way/options.h"
#include "agentd/way/way.h"
#include "libs/base/clock.h"

namespace agentd {

// Who is asked and who is listened to: what a folder and a cluster have each in its own way. Made
// and ended on the loop's thread, after the loop and before it.
class Sources {
 public:
  virtual ~Sources() = default;
  virtual WaysIn& ways() = 0;
  virtual Directory& directory() = 0;
};

// Whatever is handed in outlives it. kInvalid, kNotFound: the options lead to no cluster.
base::Result<std::unique_ptr<Sources>> open_sources(const WayOptions& options,
                                                    aio::Executor executor, Names& names,
                                                    const base::Clock& clock);

}  // namespace agentd
