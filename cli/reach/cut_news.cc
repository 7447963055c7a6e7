#include "cli/reach/cut_news.h"

namespace cli {

std::optional<std::string> CutNews::look(const wire::Connection& connection, base::Moment now) {
  const auto cut = connection.cut_since();
  if (!watched_ || cut.has_value() == told_) return std::nullopt;
  if (cut && now < *cut + kUntoldFor) return std::nullopt;
  told_ = cut.has_value();
  if (!cut) return "there is a link again";
  const std::string& trouble = connection.trouble();
  return "no link to the sandbox; it goes on when there is one" +
         (trouble.empty() ? "" : " (" + trouble + ")");
}

base::Moment CutNews::next_moment(const wire::Connection& connection) const {
  const auto cut = connection.cut_since();
  return cut && watched_ && !told_ ? *cut + kUntoldFor : base::Moment::max();
}

}  // namespace cli
