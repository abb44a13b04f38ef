// Many phrases looked for in one pass.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace sextant::backends {

/// Finds every occurrence of a fixed set of phrases, in time linear in the text whatever the text is.
/// Upper and lower case of ASCII letters are the same. Immutable after construction, so thread-safe.
class PhraseFinder {
 public:
  /// No phrase may be empty.
  explicit PhraseFinder(std::span<const std::string_view> phrases);

  /// Called with the index of a phrase and the position of its first character; in the order in which the
  /// occurrences end, longer phrases first.
  using Sink = std::function<void(std::size_t phrase, std::size_t position)>;

  void find(std::string_view text, const Sink& sink) const;

 private:
  struct Ending {
    std::uint32_t phrase;
    std::uint32_t length;
    std::int32_t next;  ///< shorter phrase that ends here too, or -1
  };

  void insert(std::string_view phrase, std::uint32_t index);
  void link();

  std::array<std::uint8_t, 256> letter_{};  ///< byte → column of the table; 0 = in no phrase
  std::size_t letters_ = 1;
  std::vector<std::int32_t> next_;    ///< node × column → node
  std::vector<std::int32_t> ending_;  ///< node → first entry of endings_, or -1
  std::vector<Ending> endings_;
};

}  // namespace sextant::backends
