#include "calibration/row_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "calibration/functional_test.h"
#include "calibration/recompute_choice.h"
#include "calibration/row_layout.h"
#include "calibration/row_model.h"
#include "calibration/sources.h"
#include "cluster/catalogue.h"
#include "model/parameters.h"

namespace sextant::calibration {
namespace {

using ClusterPointer = std::shared_ptr<const cluster::Cluster>;

/// A cluster of `world` GPUs in whole nodes; nodes smaller than usual when they would not be whole.
void resize(cluster::Cluster& c, int world) {
  if (world < c.node.gpus) {
    c.node.domain_gpus = c.node.domain_gpus == c.node.gpus ? world : c.node.domain_gpus;
    c.node.gpus = world;
  }
  while (world % c.node.gpus != 0) --c.node.gpus;
  c.nodes = world / c.node.gpus;
}

std::variant<ClusterPointer, std::string> cluster_of(const MeasuredRow& row, int world,
                                                     const cluster::Cluster* given, RowSettings& settings) {
  const cluster::CatalogueEntry* entry = cluster::find_accelerator(row.gpu);
  const bool takes_given =
      given != nullptr &&
      (row.gpu.empty() || (entry != nullptr && entry->usual.accelerator.name == given->accelerator.name));
  if (!takes_given && entry == nullptr) {
    return row.gpu.empty() ? std::string("the accelerator is not printed")
                           : fmt::format("the catalogue has no accelerator '{}'", row.gpu);
  }
  auto c = std::make_shared<cluster::Cluster>(takes_given ? *given : entry->usual);
  resize(*c, world);
  c->memory_safety_margin = 0;
  if (!takes_given) {
    c->node.domain_gpus = settings.integer("domain_gpus", c->node.domain_gpus);
    c->node.nics = settings.integer("nics", c->node.nics);
    const double usual_gb_per_s = c->node.nic_bandwidth_bytes_per_s / base::kGB;
    c->node.nic_bandwidth_bytes_per_s = settings.number("nic_bandwidth_gb_per_s", usual_gb_per_s) * base::kGB;
    c->name = fmt::format("{}:{}x{}", entry->key, c->nodes, c->node.gpus);
  }
  return ClusterPointer(c);
}

FlopsConvention flops_convention(const std::string& name) {
  if (name == "hardware") return FlopsConvention::kHardware;
  if (name == "model-full-attention") return FlopsConvention::kModelFullAttention;
  if (name == "six-per-parameter") return FlopsConvention::kSixPerParameter;
  return FlopsConvention::kModelCausal;
}

MemoryKind memory_kind(const std::string& name) {
  if (name == "allocated") return MemoryKind::kAllocated;
  return name == "reserved" ? MemoryKind::kReserved : MemoryKind::kDevice;
}

void set_conventions(const MeasuredRow& row, RowSettings& settings, RowJob& result) {
  result.flops = flops_convention(settings.text("flops", "model-causal"));
  const bool kind_said = !row.memory_kind.empty() && row.memory_kind != "unknown";
  result.memory_kind = memory_kind(kind_said ? row.memory_kind : settings.text("memory_kind", "device"));
  const std::string stage = row.memory_stage.empty() ? settings.text("memory_stage", "") : row.memory_stage;
  result.memory_stage = stage == "last"    ? MemoryStage::kLast
                        : stage == "first" ? MemoryStage::kFirst
                                           : MemoryStage::kLargest;
  result.memory_unit_bytes = settings.text("memory_unit", "GiB") == "GB" ? base::kGB : base::kGiB;
  const std::string figure = settings.text("memory_figure", "peak");
  result.memory_is_static = figure == "static";
  result.memory_is_bound = figure == "upper bound";
}

std::string unsupported(const MeasuredRow& row, const training::Job& job) {
  for (const std::string_view word : {"CPU offload", "activation offload on", "offload_modules"}) {
    if (row.extra.find(word) != std::string::npos) return "offloading to the host is not modelled";
  }
  if (job.cluster->accelerator.peak(job.layout.precision) <= 0) {
    return fmt::format("{} has no {} units", job.cluster->accelerator.name,
                       cluster::name(job.layout.precision));
  }
  return {};
}

std::variant<RowJob, std::string> from_columns(const MeasuredRow& row, const cluster::Cluster* given,
                                               RowSettings& settings) {
  auto model = model_of(row, settings);
  if (auto* reason = std::get_if<std::string>(&model)) return std::move(*reason);
  RowJob result;
  training::Job& job = result.job;
  job.model = std::get<0>(std::move(model));
  model::require_sane(*job.model);
  job.software = software_of(settings);
  RowLayout row_layout = layout_of(row, *job.model, settings);
  if (!row_layout.reason.empty()) return row_layout.reason;
  job.layout = row_layout.layout;
  result.flushes = row_layout.flushes;
  auto cluster = cluster_of(row, job.layout.world, given, settings);
  if (auto* reason = std::get_if<std::string>(&cluster)) return std::move(*reason);
  job.cluster = std::get<0>(std::move(cluster));
  if (std::string reason = unsupported(row, job); !reason.empty()) return reason;
  job.backend = settings.text("backend", "megatron-core");
  if (row_layout.cheapest_recompute) {
    settings.assume("recomputation taken as " + choose_cheapest_recompute(job) + ": the least that fits");
  }
  return result;
}

std::variant<RowJob, std::string> from_test(const MeasuredRow& row, const cluster::Cluster* given,
                                            RowSettings& settings) {
  auto job = functional_test_job(row);
  if (auto* reason = std::get_if<std::string>(&job)) return std::move(*reason);
  RowJob result;
  result.job = std::get<training::Job>(std::move(job));
  result.functional_test = true;
  model::require_sane(*result.job.model);
  auto cluster = cluster_of(row, result.job.layout.world, given, settings);
  if (auto* reason = std::get_if<std::string>(&cluster)) return std::move(*reason);
  result.job.cluster = std::get<0>(std::move(cluster));
  return result;
}

double parameters_of_layers(const model::Model& m) {
  const model::ParameterCounts counts = model::count_parameters(m);
  return static_cast<double>(counts.total() - counts.embedding - counts.head);
}

}  // namespace

std::variant<RowJob, std::string> row_job(const MeasuredRow& row, const cluster::Cluster* cluster) {
  try {
    RowSettings settings(row);
    const bool test = settings.text("flags", "") == "megatron";
    auto result = test ? from_test(row, cluster, settings) : from_columns(row, cluster, settings);
    if (auto* made = std::get_if<RowJob>(&result)) {
      set_conventions(row, settings, *made);
      made->job.name = row.id;
      made->job.warnings = settings.assumptions();
    }
    return result;
  } catch (const base::UserError& error) {
    return error.message();
  }
}

bool has_assumed_batch(const RowJob& row) {
  return std::ranges::any_of(row.job.warnings, [](const std::string& assumption) {
    return assumption.starts_with("microbatches taken as") ||
           assumption.starts_with("one micro-batch a step") ||
           assumption.starts_with("sequence_tokens taken as");
  });
}

std::variant<training::Job, std::string> job_of(const MeasuredRow& row) {
  auto result = row_job(row);
  if (auto* reason = std::get_if<std::string>(&result)) return std::move(*reason);
  return std::get<RowJob>(std::move(result)).job;
}

double printed_flops_per_token(const training::Job& job, FlopsConvention convention) {
  const model::Model& m = *job.model;
  const double causal = model::model_flops_per_token(m, job.layout.sequence_tokens);
  // At one token attention has next to no pairs: what is left are the matrices.
  const double matrices = model::model_flops_per_token(m, 1);
  const double attention = causal - matrices;
  switch (convention) {
    case FlopsConvention::kModelCausal:
      return causal;
    case FlopsConvention::kModelFullAttention:
      return causal + attention;
    case FlopsConvention::kHardware: {
      const double head = 6.0 * static_cast<double>(m.hidden) * static_cast<double>(m.vocabulary);
      const bool again = job.layout.recompute.granularity == parallel::RecomputeGranularity::kFull;
      return head + (again ? 4.0 / 3.0 : 1.0) * (matrices - head + 2 * attention);
    }
    case FlopsConvention::kSixPerParameter:
      return 6.0 *
             (parameters_of_layers(m) + static_cast<double>(m.hidden) * static_cast<double>(m.vocabulary));
  }
  return causal;
}

}  // namespace sextant::calibration
