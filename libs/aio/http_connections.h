#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>

#include "libs/aio/stream.h"

namespace aio {

// The open connections of a server. Those that wait for a request, or for the rest of its head,
// make room for newcomers, the longest waiting first. Private to libs/aio.
class OpenConnections {
 public:
  explicit OpenConnections(std::size_t max) : max_(max) {}

  // Whether one more may be added: closes one that waits when all places are taken.
  bool make_room();
  // Closes the one that has waited longest; false when none waits.
  bool close_longest_waiting();

  void add(const std::shared_ptr<Stream>& stream);  // At work, until it is said to wait.
  void waits(Stream& stream);
  void works(Stream& stream);
  void remove(Stream& stream);
  void reset_all();

 private:
  struct Place {
    std::weak_ptr<Stream> stream;
    std::optional<std::list<Stream*>::iterator> waiting;
  };

  const std::size_t max_;
  std::unordered_map<Stream*, Place> places_;
  std::list<Stream*> waiting_;  // Longest first.
};

}  // namespace aio
