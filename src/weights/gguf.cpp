#include "weights/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <set>

#include "base/error.h"

namespace sextant::weights {
namespace {

constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint32_t kMostDimensions = 4;  // GGML_MAX_DIMS

// gguf_metadata_value_type of the specification.
enum class Kind : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

/// ggml_type numbers that are read, and how the others are called in the refusal.
std::optional<Dtype> dtype_of(std::uint32_t type) {
  switch (type) {
    case 0:
      return Dtype::kF32;
    case 1:
      return Dtype::kF16;
    case 3:
      return Dtype::kQ4_1;
    case 8:
      return Dtype::kQ8_0;
    case 24:
      return Dtype::kI8;
    case 25:
      return Dtype::kI16;
    case 26:
      return Dtype::kI32;
    case 27:
      return Dtype::kI64;
    case 28:
      return Dtype::kF64;
    case 30:
      return Dtype::kBf16;
    default:
      return std::nullopt;
  }
}

std::string type_name(std::uint32_t type) {
  static constexpr std::string_view kNames[] = {"F32",  "F16",  "Q4_0", "Q4_1", "",     "",
                                                "Q5_0", "Q5_1", "Q8_0", "Q8_1", "Q2_K", "Q3_K",
                                                "Q4_K", "Q5_K", "Q6_K", "Q8_K"};
  if (type < std::size(kNames) && !kNames[type].empty()) return std::string(kNames[type]);
  return fmt::format("type {}", type);
}

/// Reads forward and never past the end.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  [[noreturn]] void refuse(const std::string& what) const { throw base::UserError({file_}, subject_, what); }
  void set_subject(std::string subject) { subject_ = std::move(subject); }

  template <typename T>
  T number() {
    need(sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  std::string_view text() {
    const auto length = number<std::uint64_t>();
    need(length);
    const std::string_view view(reinterpret_cast<const char*>(bytes_.data() + at_),
                                static_cast<std::size_t>(length));
    at_ += view.size();
    return view;
  }

  /// A count of things that take at least `bytes_each`.
  std::uint64_t count(std::uint64_t bytes_each, const char* what) {
    const auto value = number<std::uint64_t>();
    if (value > left() / bytes_each) {
      refuse(
          fmt::format("says it has {} {}, more than fit into the file: incomplete download?", value, what));
    }
    return value;
  }

 private:
  void need(std::uint64_t bytes) const {
    if (bytes > left())
      refuse(fmt::format("the file ends at byte {}, inside its header: incomplete download?", bytes_.size()));
  }

  std::span<const std::byte> bytes_;
  const std::string& file_;
  std::string subject_;
  std::size_t at_ = 0;
};

GgufValue read_value(Cursor& cursor, Kind kind);

/// Bytes that an element takes at least.
std::uint64_t least_bytes(Kind kind) {
  switch (kind) {
    case Kind::kU8:
    case Kind::kI8:
    case Kind::kBool:
      return 1;
    case Kind::kU16:
    case Kind::kI16:
      return 2;
    case Kind::kU32:
    case Kind::kI32:
    case Kind::kF32:
      return 4;
    default:
      return 8;
  }
}

GgufValue read_array(Cursor& cursor) {
  const auto kind = static_cast<Kind>(cursor.number<std::uint32_t>());
  if (kind == Kind::kArray) cursor.refuse("holds arrays of arrays, which are not supported");
  const std::uint64_t count = cursor.count(least_bytes(kind), "elements");
  std::vector<std::int64_t> integers;
  std::vector<double> numbers;
  std::vector<std::string_view> texts;
  for (std::uint64_t i = 0; i < count; ++i) {
    const GgufValue value = read_value(cursor, kind);
    if (const auto* text = std::get_if<std::string_view>(&value)) texts.push_back(*text);
    if (const auto* number = std::get_if<double>(&value)) numbers.push_back(*number);
    if (const auto* integer = std::get_if<std::int64_t>(&value)) integers.push_back(*integer);
    if (const auto* large = std::get_if<std::uint64_t>(&value))
      integers.push_back(static_cast<std::int64_t>(*large));
    if (const auto* truth = std::get_if<bool>(&value)) integers.push_back(*truth ? 1 : 0);
  }
  if (kind == Kind::kString) return texts;
  if (kind == Kind::kF32 || kind == Kind::kF64) return numbers;
  return integers;
}

GgufValue read_value(Cursor& cursor, Kind kind) {
  switch (kind) {
    case Kind::kU8:
      return std::int64_t{cursor.number<std::uint8_t>()};
    case Kind::kI8:
      return std::int64_t{cursor.number<std::int8_t>()};
    case Kind::kU16:
      return std::int64_t{cursor.number<std::uint16_t>()};
    case Kind::kI16:
      return std::int64_t{cursor.number<std::int16_t>()};
    case Kind::kU32:
      return std::int64_t{cursor.number<std::uint32_t>()};
    case Kind::kI32:
      return std::int64_t{cursor.number<std::int32_t>()};
    case Kind::kF32:
      return double{cursor.number<float>()};
    case Kind::kBool: {
      const auto byte = cursor.number<std::uint8_t>();
      if (byte > 1) cursor.refuse(fmt::format("is a boolean with the value {}", byte));
      return byte == 1;
    }
    case Kind::kString:
      return cursor.text();
    case Kind::kArray:
      return read_array(cursor);
    case Kind::kU64:
      return cursor.number<std::uint64_t>();
    case Kind::kI64:
      return cursor.number<std::int64_t>();
    case Kind::kF64:
      return cursor.number<double>();
  }
  cursor.refuse(fmt::format("has the unknown type {}", static_cast<std::uint32_t>(kind)));
}

void read_metadata(Cursor& cursor, std::uint64_t count, GgufFile& gguf) {
  for (std::uint64_t i = 0; i < count; ++i) {
    cursor.set_subject(fmt::format("metadata {}", i));
    const std::string key(cursor.text());
    cursor.set_subject(key);
    const auto kind = static_cast<Kind>(cursor.number<std::uint32_t>());
    if (!gguf.metadata.emplace(key, read_value(cursor, kind)).second)
      cursor.refuse("this key stands there twice");
  }
}

struct Described {
  Tensor tensor;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

Described read_description(Cursor& cursor, std::uint64_t index, const std::string& file) {
  Described described;
  Tensor& tensor = described.tensor;
  cursor.set_subject(fmt::format("tensor {}", index));
  tensor.name = cursor.text();
  tensor.file = file;
  cursor.set_subject(tensor.name);
  const auto dimensions = cursor.number<std::uint32_t>();
  if (dimensions > kMostDimensions)
    cursor.refuse(fmt::format("has {} dimensions, at most {} are read", dimensions, kMostDimensions));
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const auto size = cursor.number<std::uint64_t>();
    if (size > std::uint64_t{1} << 62)
      cursor.refuse("a dimension is larger than any file: the header is damaged");
    tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(size));
  }
  const auto type = cursor.number<std::uint32_t>();
  const auto dtype = dtype_of(type);
  if (!dtype) {
    cursor.refuse(fmt::format(
        "is stored as {}; F32, F16, BF16, Q8_0 and Q4_1 are read: convert the file to one of these",
        type_name(type)));
  }
  tensor.dtype = *dtype;
  described.offset = cursor.number<std::uint64_t>();
  described.bytes = static_cast<std::uint64_t>(size_bytes(tensor.dtype, tensor.shape, file, tensor.name));
  return described;
}

std::uint64_t alignment_of(const GgufFile& gguf, Cursor& cursor) {
  const auto found = gguf.metadata.find("general.alignment");
  if (found == gguf.metadata.end()) return kDefaultAlignment;
  const auto* const value = std::get_if<std::int64_t>(&found->second);
  cursor.set_subject("general.alignment");
  if (value == nullptr || *value < 1 || *value > 1 << 20 ||
      !std::has_single_bit(static_cast<std::uint64_t>(*value))) {
    cursor.refuse("must be a power of two");
  }
  return static_cast<std::uint64_t>(*value);
}

/// Places each tensor in the data; they may have padding between them, and may not overlap.
void place(std::vector<Described>& tensors, std::span<const std::byte> data, std::uint64_t alignment,
           Cursor& cursor) {
  std::sort(tensors.begin(), tensors.end(), [](const Described& a, const Described& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  std::uint64_t reached = 0;
  std::string before;
  for (Described& described : tensors) {
    cursor.set_subject(described.tensor.name);
    if (described.offset % alignment != 0) {
      cursor.refuse(
          fmt::format("its offset {} is no multiple of the alignment {}", described.offset, alignment));
    }
    if (described.offset > data.size() || described.bytes > data.size() - described.offset) {
      cursor.refuse(
          fmt::format("its {} bytes at {} end after the {} bytes of data in the file: incomplete download?",
                      described.bytes, described.offset, data.size()));
    }
    if (described.offset < reached) cursor.refuse(fmt::format("its bytes overlap those of {}", before));
    described.tensor.bytes =
        data.subspan(static_cast<std::size_t>(described.offset), static_cast<std::size_t>(described.bytes));
    reached = described.offset + described.bytes;
    before = described.tensor.name;
  }
}

}  // namespace

GgufFile read_gguf(std::span<const std::byte> file_bytes, const std::string& file) {
  Cursor cursor(file_bytes, file);
  if (file_bytes.size() < 4 || std::memcmp(file_bytes.data(), "GGUF", 4) != 0) {
    cursor.refuse(file_bytes.empty() ? "is empty: incomplete download?"
                                     : "does not begin with GGUF: this is no such file");
  }
  cursor.number<std::uint32_t>();
  const auto version = cursor.number<std::uint32_t>();
  if (version != 2 && version != 3)
    cursor.refuse(fmt::format("has version {} of GGUF; 2 and 3, little-endian, are read", version));
  const std::uint64_t tensors = cursor.count(24, "tensors");     // name, dimensions, type and offset
  const std::uint64_t keys = cursor.count(13, "metadata keys");  // name, type and a byte
  GgufFile gguf;
  read_metadata(cursor, keys, gguf);
  std::vector<Described> described;
  std::set<std::string, std::less<>> names;
  for (std::uint64_t i = 0; i < tensors; ++i) {
    described.push_back(read_description(cursor, i, file));
    if (!names.insert(described.back().tensor.name).second) cursor.refuse("this name stands there twice");
  }
  const std::uint64_t alignment = alignment_of(gguf, cursor);
  const std::size_t begin = (cursor.at() + alignment - 1) / alignment * alignment;
  const auto data = begin < file_bytes.size() ? file_bytes.subspan(begin) : std::span<const std::byte>();
  place(described, data, alignment, cursor);
  for (Described& one : described) gguf.tensors.push_back(std::move(one.tensor));
  std::sort(gguf.tensors.begin(), gguf.tensors.end(),
            [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
  return gguf;
}

}  // namespace sextant::weights
