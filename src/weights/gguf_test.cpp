#include "weights/gguf.h"

#include <gmock/gmock.h>

#include <cstring>
#include <string>

#include "base/error.h"
#include "weights/expand.h"

namespace sextant::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::string raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

std::string text(const std::string& content) { return raw(std::uint64_t{content.size()}) + content; }

std::string header(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3) {
  return "GGUF" + raw(version) + raw(tensors) + raw(keys);
}

std::string tensor(const std::string& name, const std::vector<std::uint64_t>& sizes, std::uint32_t type,
                   std::uint64_t offset) {
  std::string bytes = text(name) + raw(static_cast<std::uint32_t>(sizes.size()));
  for (const std::uint64_t size : sizes) bytes += raw(size);
  return bytes + raw(type) + raw(offset);
}

/// Padded to the alignment, then the data.
std::string with_data(std::string file, const std::string& data) {
  file.append((32 - file.size() % 32) % 32, '\0');
  return file + data;
}

std::string refusal(const std::string& file) {
  try {
    read_gguf(std::as_bytes(std::span(file)), "m.gguf");
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

// A file written by hand after the specification: two keys of each kind that matter, two tensors.
std::string sample() {
  std::string file = header(2, 4);
  file += text("general.architecture") + raw(std::uint32_t{8}) + text("llama");
  file += text("llama.block_count") + raw(std::uint32_t{4}) + raw(std::uint32_t{30});
  file += text("tokens") + raw(std::uint32_t{9}) + raw(std::uint32_t{8}) + raw(std::uint64_t{2}) + text("a") +
          text("b");
  file += text("eps") + raw(std::uint32_t{6}) + raw(1e-5F);
  file += tensor("w", {2, 3}, 0, 0) + tensor("v", {32}, 8, 32);
  std::string data;
  for (int i = 0; i < 6; ++i) data += raw(static_cast<float>(i));
  data.resize(32, '\0');
  data += std::string("\x00\x3c", 2);  // scale 1
  for (int i = 0; i < 32; ++i) data += static_cast<char>(i);
  return with_data(file, data);
}

TEST(ReadGguf, GivesMetadataAndTensorsWithTheOutermostDimensionFirst) {
  const std::string file = sample();
  const GgufFile gguf = read_gguf(std::as_bytes(std::span(file)), "m.gguf");
  EXPECT_EQ(*gguf.find<std::string_view>("general.architecture"), "llama");
  EXPECT_EQ(*gguf.find<std::int64_t>("llama.block_count"), 30);
  EXPECT_THAT(*gguf.find<std::vector<std::string_view>>("tokens"), ElementsAre("a", "b"));
  EXPECT_FLOAT_EQ(static_cast<float>(*gguf.find<double>("eps")), 1e-5F);
  ASSERT_EQ(gguf.tensors.size(), 2U);
  EXPECT_EQ(to_float32(gguf.tensors[0])[31], 31.0F);
  EXPECT_THAT(gguf.tensors[1].shape, ElementsAre(3, 2));
  EXPECT_THAT(to_float32(gguf.tensors[1]), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(ReadGguf, RefusesEveryTruncation) {
  const std::string whole = sample();
  ASSERT_EQ(refusal(whole), "no error");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THAT(refusal(whole.substr(0, length)), HasSubstr("m.gguf: ")) << length;
  }
}

TEST(ReadGguf, RefusesLies) {
  EXPECT_THAT(refusal("GGML1234"), HasSubstr("does not begin with GGUF"));
  EXPECT_THAT(refusal(header(0, 0, 1)), HasSubstr("has version 1 of GGUF"));
  EXPECT_THAT(refusal(header(std::uint64_t{1} << 60, 0)),
              HasSubstr("says it has 1152921504606846976 tensors"));
  const std::string two_keys = text("k") + raw(std::uint32_t{0}) + "\1";
  EXPECT_THAT(refusal(header(0, 2) + two_keys + two_keys), HasSubstr("k: this key stands there twice"));
  EXPECT_THAT(refusal(header(0, 1) + text("k") + raw(std::uint32_t{77}) + "12345678"),
              HasSubstr("k: has the unknown type 77"));
  EXPECT_THAT(refusal(with_data(header(1, 0) + tensor("w", {256}, 12, 0), std::string(144, 'x'))),
              HasSubstr("w: is stored as Q4_K"));
  EXPECT_THAT(refusal(with_data(header(1, 0) + tensor("w", {33}, 8, 0), std::string(64, 'x'))),
              HasSubstr("w: shape [33]: Q8_0 stores 32 elements together"));
  EXPECT_THAT(refusal(with_data(header(1, 0) + tensor("w", {1}, 0, 4), "12345678")),
              HasSubstr("w: its offset 4"));
  EXPECT_THAT(refusal(with_data(header(1, 0) + tensor("w", {16}, 0, 32), std::string(64, 'x'))),
              HasSubstr("w: its 64 bytes at 32 end after the 64 bytes"));
  EXPECT_THAT(refusal(with_data(header(2, 0) + tensor("a", {16}, 0, 0) + tensor("b", {16}, 0, 32),
                                std::string(96, 'x'))),
              HasSubstr("b: its bytes overlap those of a"));
  EXPECT_THAT(refusal(with_data(header(2, 0) + tensor("a", {1}, 0, 0) + tensor("a", {1}, 0, 32),
                                std::string(64, 'x'))),
              HasSubstr("a: this name stands there twice"));
}

}  // namespace
}  // namespace sextant::weights
