#pragma once

#include "libs/wire/frames/fields.h"

// Rules and fields that operations on files, archives and searches have in common.
namespace wire {

inline constexpr Name kPath{1, 4096};
inline constexpr Name kEntryName{1, 255};
inline constexpr std::size_t kExcludesMax = 64;

void place_fields(auto& visit, auto& place) {
  visit.optional("target", place.target, kPath);
  visit.optional("path", place.path, kPath);
  visit.optional("cwd", place.cwd, kPath);
  visit.judge(place.target.has_value() != place.path.has_value(),
              "either \"target\" or \"path\" is needed");
  visit.judge(!place.target || !place.cwd, "\"cwd\" goes with \"path\"");
}

}  // namespace wire
