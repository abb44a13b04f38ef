// What happened to one request, as a client sees it. Everything that is judged follows from this.
//
// Times are seconds since the start of the run on the caller's clock; a simulator fills the same record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sextant::load {

struct Timeline {
  std::int64_t input_tokens = 0;             ///< of the prompt, as the client counts
  std::int64_t requested_output_tokens = 0;  ///< that were asked for
  double due_s = 0;                          ///< when it arrived; before sent_s where a bound made it wait
  double sent_s = 0;                         ///< when it was sent
  /// When each chunk of the answer arrived. A chunk holds one token, or several (speculative decoding,
  /// coalesced writes), or a part of none.
  std::vector<double> chunk_s{};
  /// Tokens of the answer up to and with each chunk, where the server says so in every chunk; else empty.
  std::vector<std::int64_t> chunk_end_tokens{};
  std::optional<std::int64_t> usage_input_tokens{};         ///< as the server's usage says
  std::optional<std::int64_t> usage_output_tokens{};        ///< likewise
  std::optional<std::int64_t> retokenised_output_tokens{};  ///< of the answer's text, by a tokenizer
  std::string error_kind{};  ///< "connect", "timeout", "http_503", …; empty: the answer is whole
  std::string error{};       ///< what happened, for people

  bool ok() const { return error_kind.empty(); }
};

/// Where the number of an answer's tokens comes from, best first.
enum class TokenCount : std::uint8_t { kUsage, kRetokenised, kChunks };

TokenCount token_count_source(const Timeline& timeline);

/// Tokens of the answer: as the server's usage says, else as a tokenizer counts its text, else its chunks.
std::int64_t output_tokens(const Timeline& timeline);

/// Of a whole answer, which has at least one chunk.
double ttft_s(const Timeline& timeline);  ///< first chunk − sent
double e2el_s(const Timeline& timeline);  ///< last chunk − sent
/// (last chunk − first chunk)/(tokens − 1); nothing for a single token.
std::optional<double> tpot_s(const Timeline& timeline);

/// Tokens that came with each chunk. Where the server does not say, the answer's tokens are spread evenly:
/// after k of K chunks, ⌊tokens · k/K⌋ have come.
std::vector<std::int64_t> chunk_tokens(const Timeline& timeline);

}  // namespace sextant::load
