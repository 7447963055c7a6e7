#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace executor {

// The last bytes of a stream, each at its offset in the whole of it.
class Tail {
 public:
  explicit Tail(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  void append(std::string_view bytes);  // The oldest go when there is no room.
  void forget_before(std::int64_t offset);
  void forget_all();  // And holds no memory until more comes.

  std::int64_t begin() const { return begin_; }  // Of the oldest that is kept.
  std::int64_t end() const { return end_; }      // How many there were in all.
  std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
  std::size_t room() const { return bytes_max_ - size(); }
  // Up to `bytes_max` of them from `offset` on, which is within begin() and end().
  std::string copy(std::int64_t offset, std::size_t bytes_max) const;

 private:
  std::size_t place_of(std::int64_t offset) const;

  std::size_t bytes_max_;
  std::string ring_;  // The byte at offset o stands at o modulo bytes_max_; grows up to that.
  std::int64_t begin_ = 0, end_ = 0;
};

}  // namespace executor
