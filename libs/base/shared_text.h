#pragma once

#include <concepts>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>

namespace base {

// A text that many objects carry: equal ones have one place in memory, which goes with the last of
// them. Never changes, as small as a pointer. Safe to make, copy and end on many threads.
class SharedText {
 public:
  SharedText() = default;  // Empty.
  // What takes a text takes it as it comes.
  SharedText(std::string_view text) : place_(find(text)) {}                    // NOLINT
  SharedText(const std::string& text) : SharedText(std::string_view(text)) {}  // NOLINT
  SharedText(const char* text) : SharedText(std::string_view(text)) {}         // NOLINT
  SharedText(const SharedText& other) : place_(again(other.place_)) {}
  SharedText(SharedText&& other) noexcept : place_(std::exchange(other.place_, nullptr)) {}
  SharedText& operator=(SharedText other) noexcept {
    std::swap(place_, other.place_);
    return *this;
  }
  ~SharedText() { let_go(place_); }

  const std::string& str() const;
  operator const std::string&() const { return str(); }  // NOLINT
  bool empty() const { return place_ == nullptr; }

  friend bool operator==(const SharedText& one, const SharedText& other) {
    return one.place_ == other.place_;
  }
  template <typename Text>
    requires std::convertible_to<const Text&, std::string_view>
  friend bool operator==(const SharedText& one, const Text& other) {
    return std::string_view(one.str()) == std::string_view(other);
  }
  friend std::string operator+(const SharedText& one, std::string_view other) {
    return one.str() + std::string(other);
  }
  friend std::string operator+(std::string one, const SharedText& other) {
    return std::move(one) + other.str();
  }

  // How many different ones there are now.
  static std::size_t places();

 private:
  struct Place;
  static Place* find(std::string_view text);
  static Place* again(Place* place);
  static void let_go(Place* place);

  Place* place_ = nullptr;
};

std::ostream& operator<<(std::ostream& out, const SharedText& text);

}  // namespace base
