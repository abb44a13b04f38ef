#include "weights/weight_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace sextant::weights {

WeightFiles::WeightFiles(std::vector<MappedFile> files, std::vector<Tensor> tensors,
                         std::vector<std::string> notes)
    : files_(std::move(files)), tensors_(std::move(tensors)), notes_(std::move(notes)) {
  std::sort(tensors_.begin(), tensors_.end(),
            [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
}

const Tensor* WeightFiles::find(std::string_view name) const {
  const auto at =
      std::lower_bound(tensors_.begin(), tensors_.end(), name,
                       [](const Tensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return at != tensors_.end() && at->name == name ? &*at : nullptr;
}

const Tensor& WeightFiles::require(std::string_view name, std::span<const std::int64_t> shape) const {
  const Tensor* const tensor = find(name);
  if (tensor == nullptr) {
    std::vector<std::string> names;
    for (const Tensor& other : tensors_) names.push_back(other.name);
    throw base::UserError(
        {tensors_.empty() ? std::string() : tensors_.front().file}, std::string(name),
        "the model needs this tensor, and its weight files do not have it" + base::did_you_mean(name, names));
  }
  if (!std::equal(shape.begin(), shape.end(), tensor->shape.begin(), tensor->shape.end())) {
    throw base::UserError({tensor->file}, tensor->name,
                          fmt::format("has shape {}, but the model's configuration asks for {}",
                                      shape_text(tensor->shape), shape_text(shape)));
  }
  return *tensor;
}

}  // namespace sextant::weights
