#include "library_products.h"

#include <chrono>
#include <map>

#ifdef SEXTANT_OPENBLAS
#include <cblas.h>
extern "C" void openblas_set_num_threads(int);
#endif
#ifdef SEXTANT_ONEDNN
#include <omp.h>

#include <dnnl.hpp>
#endif

namespace sextant::bench_library {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

#ifdef SEXTANT_OPENBLAS
class OpenBlas : public Products {
 public:
  OpenBlas(const std::vector<Projection>& projections, std::size_t threads) : projections_(projections) {
    openblas_set_num_threads(static_cast<int>(threads));
    for (const Projection& p : projections)
      weights_.emplace_back(static_cast<std::size_t>(p.columns * p.depth), 0.01F);
  }
  std::string name() const override { return "OpenBLAS float32"; }
  double seconds(std::int64_t rows, std::size_t projection) override {
    const Projection& p = projections_[projection];
    const auto size = [](std::int64_t a, std::int64_t b) { return static_cast<std::size_t>(a * b); };
    if (x_.size() < size(rows, p.depth)) x_.resize(size(rows, p.depth), 0.5F);
    if (out_.size() < size(rows, p.columns)) out_.resize(size(rows, p.columns));
    const double begin = now_s();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(rows), static_cast<int>(p.columns),
                static_cast<int>(p.depth), 1.0F, x_.data(), static_cast<int>(p.depth),
                weights_[projection].data(), static_cast<int>(p.depth), 0.0F, out_.data(),
                static_cast<int>(p.columns));
    return now_s() - begin;
  }

 private:
  std::vector<Projection> projections_;
  std::vector<std::vector<float>> weights_;
  std::vector<float> x_, out_;
};
#endif

#ifdef SEXTANT_ONEDNN
class OneDnn : public Products {
 public:
  OneDnn(const std::vector<Projection>& projections, std::size_t threads)
      : projections_(projections), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    omp_set_num_threads(static_cast<int>(threads));
    const bool wide_vectors = __builtin_cpu_supports("avx512bw") != 0;
    type_ = wide_vectors ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
  }
  std::string name() const override {
    return type_ == dnnl::memory::data_type::bf16 ? "oneDNN bfloat16, packed" : "oneDNN float32, packed";
  }
  double seconds(std::int64_t rows, std::size_t projection) override {
    Prepared& p = prepared(rows, projection);
    const double begin = now_s();
    p.product.execute(stream_, {{DNNL_ARG_SRC, p.x}, {DNNL_ARG_WEIGHTS, p.weights}, {DNNL_ARG_DST, p.out}});
    stream_.wait();
    return now_s() - begin;
  }

 private:
  struct Prepared {
    std::int64_t rows = 0;
    dnnl::matmul product;
    dnnl::memory x, weights, out;
  };

  /// Weights are packed anew when the number of rows changes, as the library wishes; that is not timed.
  Prepared& prepared(std::int64_t rows, std::size_t projection) {
    using Tag = dnnl::memory::format_tag;
    Prepared& p = prepared_[projection];
    if (p.rows == rows) return p;
    const Projection& shape = projections_[projection];
    const dnnl::memory::desc x({rows, shape.depth}, type_, Tag::ab);
    const dnnl::memory::desc any({shape.depth, shape.columns}, type_, Tag::any);
    const dnnl::memory::desc out({rows, shape.columns}, dnnl::memory::data_type::f32, Tag::ab);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(x, any, out), engine_);
    p.rows = rows;
    p.product = dnnl::matmul(description);
    p.x = filled(x);
    p.out = filled(out);
    if (!p.weights || p.weights.get_desc() != description.weights_desc())
      p.weights = filled(description.weights_desc());
    return p;
  }

  /// The arrangement matters to the speed, the numbers do not.
  dnnl::memory filled(const dnnl::memory::desc& description) {
    dnnl::memory memory(description, engine_);
    auto* bytes = static_cast<unsigned char*>(memory.get_data_handle());
    for (std::size_t i = 0; i < description.get_size(); ++i) bytes[i] = i % 2 == 0 ? 0 : 0x3c;
    return memory;
  }

  std::vector<Projection> projections_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::memory::data_type type_;
  std::map<std::size_t, Prepared> prepared_;
};
#endif

}  // namespace

std::vector<std::unique_ptr<Products>> libraries([[maybe_unused]] const std::vector<Projection>& projections,
                                                 [[maybe_unused]] std::size_t threads) {
  std::vector<std::unique_ptr<Products>> all;
#ifdef SEXTANT_ONEDNN
  all.push_back(std::make_unique<OneDnn>(projections, threads));
#endif
#ifdef SEXTANT_OPENBLAS
  all.push_back(std::make_unique<OpenBlas>(projections, threads));
#endif
  return all;
}

}  // namespace sextant::bench_library
