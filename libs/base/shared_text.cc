#include "libs/base/shared_text.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <ostream>
#include <unordered_map>

namespace base {

struct SharedText::Place {
  explicit Place(std::string_view text) : text(text) {}
  const std::string text;
  std::atomic<std::size_t> holders = 1;
};

namespace {

// All places by their text. A place begins and ends under the lock, so that nobody finds one that
// is about to go.
template <typename Place>
struct Pool {
  std::mutex mutex;
  std::unordered_map<std::string_view, std::unique_ptr<Place>> places;

  // It outlives whatever is destroyed at the end of the program.
  static Pool& only() {
    static Pool& pool = *new Pool;
    return pool;
  }
};

}  // namespace

SharedText::Place* SharedText::find(std::string_view text) {
  if (text.empty()) return nullptr;
  auto& pool = Pool<Place>::only();
  std::lock_guard lock(pool.mutex);
  if (const auto found = pool.places.find(text); found != pool.places.end()) {
    ++found->second->holders;
    return found->second.get();
  }
  auto made = std::make_unique<Place>(text);
  Place* place = made.get();
  pool.places.emplace(place->text, std::move(made));
  return place;
}

SharedText::Place* SharedText::again(Place* place) {
  if (place) ++place->holders;
  return place;
}

void SharedText::let_go(Place* place) {
  if (!place) return;
  std::size_t holders = place->holders;
  while (holders > 1)
    if (place->holders.compare_exchange_weak(holders, holders - 1)) return;
  // Perhaps the last: somebody may find it again before we have the lock.
  auto& pool = Pool<Place>::only();
  std::lock_guard lock(pool.mutex);
  if (--place->holders == 0) pool.places.erase(pool.places.find(place->text));
}

const std::string& SharedText::str() const {
  static const std::string empty;
  return place_ ? place_->text : empty;
}

std::size_t SharedText::places() {
  auto& pool = Pool<Place>::only();
  std::lock_guard lock(pool.mutex);
  return pool.places.size();
}

std::ostream& operator<<(std::ostream& out, const SharedText& text) { return out << text.str(); }

}  // namespace base
