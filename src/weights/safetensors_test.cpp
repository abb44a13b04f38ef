#include "weights/safetensors.h"

#include <gmock/gmock.h>
#include <immintrin.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "weights/expand.h"
#include "weights/weight_files.h"

namespace sextant::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// A file of that header and so many bytes of data: 0, 1, 2, …
std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  file += header;
  for (std::size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i);
  return file;
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

template <typename Work>
std::string refusal_of(const Work& work) {
  try {
    work();
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

std::string refusal(const std::string& file) {
  return refusal_of([&] { read_safetensors(bytes_of(file), "w.safetensors"); });
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& range) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + range + "}";
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& range) {
  return R"({"a":)" + entry(dtype, shape, range) + "}";
}

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("sextant_weights_" + std::to_string(::getpid()) + "_" +
                                           ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void put(const std::string& name, const std::string& bytes) { base::write_file(path(name), bytes); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string open_refusal() const {
    return refusal_of([&] { open_weights(folder_.string()); });
  }

  fs::path folder_;
};

TEST(ReadSafetensors, GivesViewsOfTheBytesByName) {
  const std::string file = file_of(R"({"__metadata__":{"format":"pt"},"b":)" + entry("F32", "[2]", "[0,8]") +
                                       R"(,"a":)" + entry("BF16", "[2,1]", "[8,12]") + "}  ",
                                   12);
  const std::vector<Tensor> tensors = read_safetensors(bytes_of(file), "w.safetensors");
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_EQ(tensors[0].dtype, Dtype::kBf16);
  EXPECT_THAT(tensors[0].shape, ElementsAre(2, 1));
  EXPECT_THAT(tensors[0].bytes, ElementsAre(std::byte{8}, std::byte{9}, std::byte{10}, std::byte{11}));
  EXPECT_EQ(tensors[1].elements(), 2);
}

TEST(ReadSafetensors, TakesSingleValuesEmptyTensorsAndAnyOrderOfRanges) {
  const std::string file =
      file_of(R"({"z":)" + entry("U8", "[4]", "[0,4]") + R"(,"none":)" + entry("F32", "[0]", "[4,4]") +
                  R"(,"a":)" + entry("F32", "[]", "[4,8]") + "}",
              8);
  EXPECT_EQ(read_safetensors(bytes_of(file), "w").size(), 3U);
  EXPECT_TRUE(read_safetensors(bytes_of(file_of("{}", 0)), "w").empty());
  EXPECT_EQ(refusal(file_of(one("F32", "[0]", "[0,0]"), 0)), "no error");
}

// https://github.com/safetensors/safetensors issues 401 and 668 show such files.
TEST(ReadSafetensors, RefusesEveryLieOfTheHeader) {
  EXPECT_THAT(refusal(""), HasSubstr("w.safetensors: is empty"));
  EXPECT_THAT(refusal("1234567"), HasSubstr("has 7 bytes"));
  EXPECT_THAT(refusal(std::string("\x40\x9D\xDF\x07\0\0\0\0", 8)), HasSubstr("header too large: 132095296"));
  EXPECT_THAT(refusal(std::string("\x10\0\0\0\0\0\0\0{}", 10)),
              HasSubstr("should have 16 bytes, and only 2"));
  EXPECT_THAT(refusal(file_of("[1]", 0)), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal(file_of("{\"a\":", 0)), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(file_of("{\"a\":{\"b\":[[[[1]]]]}}", 0)), HasSubstr("nested deeper"));
  EXPECT_THAT(refusal(file_of(one("F32", "[1000,1000]", "[0,4]"), 4)),
              HasSubstr("a: shape [1000, 1000] of F32 takes 4000000 bytes, but data_offsets [0, 4] hold 4"));
  EXPECT_THAT(refusal(file_of(one("F99", "[1]", "[0,4]"), 4)), HasSubstr("a: unknown dtype \"F99\""));
  EXPECT_THAT(refusal(file_of(one("F32", "[-1]", "[0,4]"), 4)), HasSubstr("\"shape\" must be a list"));
  EXPECT_THAT(refusal(file_of(one("F32", "[1.0]", "[0,4]"), 4)), HasSubstr("\"shape\" must be a list"));
  EXPECT_THAT(refusal(file_of(one("F32", "3", "[0,4]"), 4)), HasSubstr("\"shape\" must be a list"));
  EXPECT_THAT(refusal(file_of(one("F32", "[1]", "[4,0]"), 4)), HasSubstr("\"data_offsets\" [4, 0]"));
  EXPECT_THAT(refusal(file_of(one("F32", "[1]", "[0,4,8]"), 4)), HasSubstr("\"data_offsets\""));
  EXPECT_THAT(refusal(file_of(one("F32", "[4294967296,4294967296,4]", "[0,4]"), 4)),
              HasSubstr("more elements"));
  EXPECT_THAT(refusal(file_of(one("F64", "[4611686018427387904]", "[0,4]"), 4)),
              HasSubstr("larger than any file"));
  EXPECT_THAT(refusal(file_of(one("F32", "[3]", "[0,12]"), 4)), HasSubstr("end after the 4 bytes of data"));
  EXPECT_THAT(refusal(file_of(one("F32", "[1]", "[0,4]"), 5)), HasSubstr("1 bytes after its last tensor"));
  EXPECT_THAT(refusal(file_of(one("F32", "[1]", "[4,8]"), 8)), HasSubstr("hole in the data: bytes 0 to 4"));
  EXPECT_THAT(refusal(file_of(one("F4", "[3]", "[0,2]"), 2)), HasSubstr("stores 2 elements together"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"F32","shape":[1]}})", 4)),
              HasSubstr("a: has no \"data_offsets\""));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4)),
              HasSubstr("\"dtype\""));
  EXPECT_THAT(refusal(file_of(R"({"a":5})", 0)), HasSubstr("a: must be an object"));
  EXPECT_THAT(refusal(file_of(R"({"__metadata__":{"format":1}})", 0)), HasSubstr("__metadata__"));
}

TEST(ReadSafetensors, RefusesOverlapsHolesAndNamesGivenTwice) {
  const auto two = [](const std::string& first, const std::string& second, const char* names = "ab") {
    return "{\"" + std::string(1, names[0]) + "\":" + entry("F32", "[2]", first) + ",\"" + names[1] +
           "\":" + entry("F32", "[2]", second) + "}";
  };
  EXPECT_THAT(refusal(file_of(two("[0,8]", "[4,12]"), 12)), HasSubstr("b: its bytes overlap those of a"));
  EXPECT_THAT(refusal(file_of(two("[0,8]", "[16,24]"), 24)), HasSubstr("b: hole in the data: bytes 8 to 16"));
  EXPECT_THAT(refusal(file_of(two("[0,8]", "[8,16]", "aa"), 16)), HasSubstr("a: duplicate key"));
  EXPECT_EQ(refusal(file_of(two("[8,16]", "[0,8]"), 16)), "no error");
}

TEST(ReadSafetensors, RefusesEveryTruncationOfAFile) {
  const std::string whole = file_of(
      R"({"a":)" + entry("F32", "[2]", "[0,8]") + R"(,"b":)" + entry("I8", "[3]", "[8,11]") + "}", 11);
  ASSERT_EQ(refusal(whole), "no error");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THAT(refusal(whole.substr(0, length)), HasSubstr("w.safetensors: ")) << length;
  }
}

TEST_F(Folder, AreReadBackAsWritten) {
  const std::vector<float> values = {1.5F, -2.0F, 3.25F};
  const std::vector<TensorToWrite> tensors = {
      {"x", Dtype::kF32, {3}, std::as_bytes(std::span(values))},
      {"y", Dtype::kF32, {1, 2}, std::as_bytes(std::span(values).first(2))}};
  write_safetensors(path("model.safetensors"), tensors);
  const WeightFiles weights = open_weights(folder_.string());
  EXPECT_THAT(to_float32(weights.require("x", std::vector<std::int64_t>{3})),
              ElementsAre(1.5F, -2.0F, 3.25F));
  EXPECT_EQ(weights.find("z"), nullptr);
  EXPECT_THAT(refusal_of([&] {
                weights.require("y", std::vector<std::int64_t>{2, 1});
              }),
              HasSubstr("y: has shape [1, 2], but the model's configuration asks for [2, 1]"));
  EXPECT_THAT(refusal_of([&] { weights.require("xx", std::vector<std::int64_t>{1}); }),
              HasSubstr("did you mean x"));
}

TEST_F(Folder, WithShardsAreOneSetOfTensors) {
  put("m-1.safetensors", file_of(R"({"a":)" + entry("U8", "[2]", "[0,2]") + "}", 2));
  put("m-2.safetensors",
      file_of(R"({"b":)" + entry("U8", "[1]", "[0,1]") + R"(,"old":)" + entry("U8", "[1]", "[1,2]") + "}",
              2));
  put("stray.safetensors", "not read");
  put("model.safetensors.index.json", R"({"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})");
  const WeightFiles weights = open_weights(folder_.string());
  ASSERT_EQ(weights.tensors().size(), 2U);
  EXPECT_THAT(to_integers(*weights.find("a")), ElementsAre(0, 1));
  EXPECT_THAT(weights.notes(),
              ElementsAre(HasSubstr("old: ignored"), HasSubstr("stray.safetensors: ignored")));
}

// https://github.com/sgl-project/sglang/pull/32279: a missing shard was served as uninitialised weights.
TEST_F(Folder, ThatLackShardsAreRefusedWithTheirNames) {
  put("m-1.safetensors", file_of(one("U8", "[2]", "[0,2]"), 2));
  put("m-2.safetensors", file_of(R"({"b":)" + entry("U8", "[1]", "[0,1]") + "}", 1));
  put("model.safetensors.index.json",
      R"({"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors","c":"m-3.safetensors"}})");
  EXPECT_THAT(open_refusal(), HasSubstr("2/3 of the files it names are there, missing: m-3.safetensors"));
  put("m-3.safetensors", "");
  EXPECT_THAT(open_refusal(), HasSubstr("m-3.safetensors: is empty: incomplete download?"));
  put("m-3.safetensors", file_of("{}", 0));
  EXPECT_THAT(open_refusal(), HasSubstr("m-3.safetensors: c: is not in this file"));
}

TEST_F(Folder, WithDamagedIndexesAreRefused) {
  const auto refusal_with = [&](const std::string& index) {
    put("model.safetensors.index.json", index);
    return open_refusal();
  };
  EXPECT_THAT(refusal_with(R"({"weight_map":{}})"), HasSubstr("weight_map: is empty"));
  EXPECT_THAT(refusal_with("{}"), HasSubstr("weight_map: must be an object"));
  EXPECT_THAT(refusal_with("[]"), HasSubstr("weight_map: must be an object"));
  EXPECT_THAT(refusal_with("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal_with(R"({"weight_map":{"a":3}})"), HasSubstr("weight_map.a: must be a file name"));
  EXPECT_THAT(refusal_with(R"({"weight_map":{"a":"../x.safetensors"}})"),
              HasSubstr("weight_map.a: must name a file"));
  EXPECT_THAT(refusal_with(R"({"weight_map":{"a":"x","a":"y"}})"), HasSubstr("a: duplicate key"));
}

TEST_F(Folder, WithoutWeightsAreRefused) {
  EXPECT_THAT(open_refusal(), HasSubstr("has neither model.safetensors nor model.safetensors.index.json"));
  EXPECT_THAT(refusal_of([&] { open_weights(path("none.safetensors")); }), HasSubstr("No such file"));
}

// Values of IEEE 754 binary16 and of bfloat16, from their definitions.
TEST(Expand, GivesTheValuesOfHalfFormats) {
  EXPECT_EQ(float_from_float16(0x3c00), 1.0F);
  EXPECT_EQ(float_from_float16(0xc000), -2.0F);
  EXPECT_EQ(float_from_float16(0x7bff), 65504.0F);
  EXPECT_EQ(float_from_float16(0x0001), std::ldexp(1.0F, -24));
  EXPECT_EQ(float_from_float16(0x0400), std::ldexp(1.0F, -14));
  EXPECT_EQ(float_from_float16(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(float_from_float16(0x7e00)));
  EXPECT_TRUE(std::signbit(float_from_float16(0x8000)));
  EXPECT_EQ(float_from_bfloat16(0x3f80), 1.0F);
  EXPECT_EQ(bfloat16_from_float(1.0F), 0x3f80);
  EXPECT_EQ(bfloat16_from_float(1.0F + std::ldexp(1.0F, -8)), 0x3f80) << "half way: to even";
  EXPECT_EQ(bfloat16_from_float(1.0F + std::ldexp(3.0F, -8)), 0x3f82) << "half way: to even";
  EXPECT_EQ(bfloat16_from_float(std::numeric_limits<float>::max()), 0x7f80) << "rounds to infinity";
  EXPECT_TRUE(std::isnan(float_from_bfloat16(bfloat16_from_float(std::nanf("")))));
}

// The processor's own conversion (F16C) is the judge of the half format.
TEST(Expand, EveryBfloat16SurvivesTheWayAndEveryHalfIsTheProcessorsValue) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = float_from_bfloat16(static_cast<std::uint16_t>(bits));
    if (!std::isnan(value)) {
      ASSERT_EQ(bfloat16_from_float(value), bits);
    }
    const float half = float_from_float16(static_cast<std::uint16_t>(bits));
    const float processor = _cvtsh_ss(static_cast<std::uint16_t>(bits));
    ASSERT_TRUE(half == processor || (std::isnan(half) && std::isnan(processor))) << bits;
  }
}

// One block each, worked out by hand from the layouts in ggml's ggml-common.h.
TEST(Expand, MultipliesBlockFormatsOut) {
  std::string q8("\x00\x38", 2);  // 0.5
  for (int i = 0; i < 32; ++i) q8 += static_cast<char>(i - 16);
  const Tensor eight{"q", Dtype::kQ8_0, {32}, bytes_of(q8), "f"};
  const std::vector<float> values = to_float32(eight);
  EXPECT_EQ(values[0], -8.0F);
  EXPECT_EQ(values[31], 7.5F);
  std::string q4("\x00\x3c\x00\xc0", 4);  // scale 1, minimum -2
  for (int i = 0; i < 16; ++i) q4 += static_cast<char>(i | (15 - i) << 4);
  const Tensor four{"q", Dtype::kQ4_1, {1, 32}, bytes_of(q4), "f"};
  std::vector<float> out(32);
  expand_float32(four, 0, out);
  EXPECT_EQ(out[0], -2.0F);
  EXPECT_EQ(out[15], 13.0F);
  EXPECT_EQ(out[16], 13.0F);
  EXPECT_EQ(out[31], -2.0F);
  EXPECT_THAT(refusal_of([&] { to_integers(four); }), HasSubstr("f: q: is stored as Q4_1"));
}

}  // namespace
}  // namespace sextant::weights
