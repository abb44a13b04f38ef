// Megatron-LM's own functional tests: torch allocated bytes of the last rank, steady (after a step) and at
// the peak.
//
// The file is read from $SEXTANT_REFERENCE_DATA/data/memory_measured.csv; without the variable the test is
// skipped. Rows are rebuilt from their columns and from the flags in `extra`, by a reader that knows only
// what these rows say.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "parallel/stages.h"
#include "training/memory.h"

namespace sextant::training {
namespace {

using Row = std::map<std::string, std::string>;

std::vector<std::string> split_line(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

std::vector<Row> read_rows(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = split_line(line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = split_line(line);
    Row row;
    for (std::size_t i = 0; i < names.size() && i < cells.size(); ++i) row[names[i]] = cells[i];
    rows.push_back(row);
  }
  return rows;
}

bool has(const Row& row, const std::string& text) { return row.at("extra").find(text) != std::string::npos; }

int number(const Row& row, const std::string& column, int otherwise) {
  const std::string& text = row.at(column);
  return text.empty() ? otherwise : std::stoi(text);
}

/// The number behind "flag=" in `extra`.
int flag(const Row& row, const std::string& name, int otherwise) {
  const std::string& extra = row.at("extra");
  const std::size_t at = extra.find(name);
  return at == std::string::npos ? otherwise : std::stoi(extra.substr(at + name.size()));
}

/// "moe-layer-freq=([0]*1+[1]*15)": leading dense layers.
int leading_dense_layers(const Row& row) { return flag(row, "moe-layer-freq=([0]*", 0); }

model::Attention attention_of(const Row& row) {
  model::Attention a;
  a.heads = number(row, "heads", 1);
  a.kv_heads = number(row, "kv_heads", 1);
  a.head_dim = flag(row, "kv-channels=", number(row, "hidden", 1) / static_cast<int>(a.heads));
  a.value_head_dim = a.head_dim;
  a.query_key_norm = has(row, "qk-layernorm");
  a.qkv_bias = a.output_bias = has(row, "linear bias on");
  if (has(row, "multi-latent-attention")) {
    a.kind = model::AttentionKind::kMultiLatent;
    a.query_latent_rank = flag(row, "q-lora-rank=", 0);
    a.kv_latent_rank = flag(row, "kv-lora-rank=", 0);
    a.head_dim = flag(row, "qk-head-dim=", 0);
    a.rotary_head_dim = flag(row, "qk-pos-emb-head-dim=", 0);
    a.value_head_dim = flag(row, "v-head-dim=", 0);
  }
  return a;
}

std::shared_ptr<const model::Model> model_of(const Row& row) {
  auto m = std::make_shared<model::Model>();
  m->name = row.at("model");
  m->hidden = number(row, "hidden", 1);
  m->vocabulary = number(row, "vocab", 1);
  m->norm = has(row, "RMSNorm") ? model::Norm::kRmsNorm : model::Norm::kLayerNorm;
  m->positions =
      has(row, "position learned_absolute") ? model::Positions::kLearned : model::Positions::kRotary;
  m->maximum_positions = flag(row, "position learned_absolute max ", 0);
  m->tied_embeddings = !has(row, "untied");
  if (has(row, "dropout 0.1/0.1")) m->hidden_dropout = m->attention_dropout = 0.1;

  model::LayerClass dense{"dense", attention_of(row), {}, 2};
  dense.mlp.activation = has(row, "SwiGLU") ? model::Activation::kSwiglu : model::Activation::kGelu;
  dense.mlp.bias = has(row, "linear bias on");
  dense.mlp.ffn = number(row, "ffn", 0);
  m->classes = {dense};
  const int layers = number(row, "layers", 0);
  m->class_of_layer.assign(static_cast<std::size_t>(layers), 0);
  if (!row.at("experts").empty()) {
    model::LayerClass moe = dense;
    moe.name = "moe";
    moe.mlp.kind = model::MlpKind::kMixtureOfExperts;
    moe.mlp.experts = number(row, "experts", 0);
    moe.mlp.experts_per_token = number(row, "topk", 0);
    moe.mlp.expert_ffn = number(row, "moe_ffn", 0);
    moe.mlp.shared_expert_ffn = flag(row, "moe-shared-expert-intermediate-size=", 0);
    moe.mlp.router_bias = has(row, "moe-router-enable-expert-bias");
    m->classes.push_back(moe);
    for (int i = leading_dense_layers(row); i < layers; ++i)
      m->class_of_layer[static_cast<std::size_t>(i)] = 1;
  }
  m->mtp.depths = flag(row, "mtp-num-layers=", 0);
  m->mtp.layer_class = static_cast<int>(m->classes.size()) - 1;
  return m;
}

std::shared_ptr<const cluster::Cluster> cluster_of(const Row& row) {
  auto c = std::make_shared<cluster::Cluster>();
  const std::string& gpu = row.at("gpu");
  c->accelerator.generation = gpu.starts_with("A100")   ? cluster::Generation::kAmpere
                              : gpu.starts_with("H100") ? cluster::Generation::kHopper
                                                        : cluster::Generation::kBlackwell;
  c->accelerator.memory_bytes = 1e12;
  return c;
}

layers::Software software_of(const Row& row) {
  layers::Software s;
  s.transformer_engine = !has(row, "transformer-impl=local");
  s.attention = !s.transformer_engine                   ? layers::AttentionKernel::kLocal
                : has(row, "attention backend unfused") ? layers::AttentionKernel::kUnfused
                                                        : layers::AttentionKernel::kFused;
  s.deterministic = has(row, "deterministic-mode") && !has(row, "frozen");
  s.grouped_gemm = has(row, "moe-grouped-gemm");
  s.gradient_accumulation_fusion = !has(row, "no-gradient-accumulation-fusion");
  s.attention_mask_from_loader = !has(row, "no-create-attention-mask-in-dataloader");
  s.router_fp32 = has(row, "moe-router-dtype=fp32");
  if (has(row, "defer-embedding-wgrad-compute")) {
    s.defer_embedding_weight_gradient = flag(row, "wgrad-deferral-limit=", -1);
  }
  if (has(row, "grad-reduce-in-bf16")) s.gradient_reduce_bytes = 2;
  s.vocabulary_divisor = flag(row, "padded to a multiple of ", 128) / number(row, "tp", 1);
  return s;
}

parallel::Layout layout_of(const Row& row) {
  parallel::Layout l;
  l.tp = number(row, "tp", 1);
  l.pp = number(row, "pp", 1);
  l.vpp = number(row, "vpp", 1);
  l.cp = number(row, "cp", 1);
  l.ep = number(row, "ep", 1);
  l.etp = flag(row, "expert-tensor-parallel-size=", row.at("experts").empty() ? 1 : l.tp);
  if (row.at("experts").empty()) l.etp = 1;
  // Four rows do not print their GPU count; it follows from their steady bytes.
  const std::map<std::string, int> inferred = {
      {"MEM-070", 64}, {"MEM-071", 32}, {"MEM-072", 128}, {"MEM-074", 64}};
  const auto found = inferred.find(row.at("id"));
  l.world = number(row, "num_gpus", found == inferred.end() ? 1 : found->second);
  l.micro_batch = number(row, "mbs", 1);
  l.global_batch = number(row, "gbs", 1);
  l.sequence_tokens = number(row, "seq", 1);
  l.microbatch_group = flag(row, "microbatch-group-size-per-virtual-pipeline-stage=", 0);
  l.sequence_parallel = row.at("sequence_parallel") == "yes" && l.tp > 1;
  if (row.at("recompute") == "full:uniform:1") {
    l.recompute = {parallel::RecomputeGranularity::kFull, parallel::RecomputeMethod::kUniform, 1, 0, 0, {}};
  }
  l.moe_dispatch = has(row, "hybridep")                             ? parallel::MoeDispatch::kHybridEp
                   : has(row, "moe-token-dispatcher-type=alltoall") ? parallel::MoeDispatch::kAllToAll
                                                                    : parallel::MoeDispatch::kAllGather;
  const std::string& precision = row.at("precision");
  if (precision == "FP16") l.precision = cluster::Precision::kFp16;
  if (precision.starts_with("FP8")) {
    l.precision = cluster::Precision::kFp8;
    l.fp8_recipe = cluster::Fp8Recipe::kTensorwise;
  }
  if (has(row, "distributed optimizer (ZeRO-1)")) l.sharding = parallel::Sharding::kDistributedOptimizer;
  if (has(row, "Megatron-FSDP optim_grads_params")) l.sharding = parallel::Sharding::kMegatronFsdpParameters;
  if (has(row, "optimizer muon")) l.optimizer.kind = parallel::OptimizerKind::kMuon;
  l.optimizer.instances = flag(row, "num-distributed-optimizer-instances=", 1);
  l.overlap.parameter_gather = has(row, "overlap-param-gather");
  if (has(row, "cross-entropy-loss-fusion")) l.loss = parallel::Loss::kNativeFused;
  l.split.first_layers = flag(row, "decoder-first-pipeline-num-layers=", 0);
  l.split.last_layers = flag(row, "decoder-last-pipeline-num-layers=", 0);
  const std::string& extra = row.at("extra");
  const std::string key = "pipeline-model-parallel-layout=";
  if (const std::size_t at = extra.find(key); at != std::string::npos) {
    const std::size_t begin = at + key.size();
    l.split.layout = extra.substr(begin, extra.find(' ', begin) - begin);
    const auto stages = std::get<parallel::StageTable>(parallel::parse_stage_layout(l.split.layout));
    l.vpp = static_cast<int>(stages.size()) / l.pp;  // not printed in a column then
  }
  l.schedule = l.vpp > 1 ? pipeline::Algorithm::kInterleaved : pipeline::Algorithm::kOneForwardOneBackward;
  return l;
}

double percent(double predicted, double measured) { return 100 * (predicted / measured - 1); }

TEST(MeasuredMemory, AgreesWithMegatronFunctionalTests) {
  const char* folder = std::getenv("SEXTANT_REFERENCE_DATA");
  if (!folder) GTEST_SKIP() << "SEXTANT_REFERENCE_DATA is not set";
  cost::Efficiency none;
  none.runtime_bytes = none.fragmentation_fraction = none.moe_overhead_bytes = 0;

  double steady_sum = 0, peak_sum = 0;
  int count = 0;
  fmt::print("{:8} {:>9} {:>9} {:>7}  {:>9} {:>9} {:>7}\n", "id", "steady MB", "measured", "%", "peak MB",
             "measured", "%");
  for (const Row& row : read_rows(std::string(folder) + "/data/memory_measured.csv")) {
    if (row.at("source").find("functional_tests") == std::string::npos || row.at("peak_bytes").empty())
      continue;
    if (has(row, "hybrid-layer-pattern")) {
      fmt::print("{:8} skipped: Mamba layers are not modelled\n", row.at("id"));
      continue;
    }
    Job job;
    job.model = model_of(row);
    job.cluster = cluster_of(row);
    job.layout = layout_of(row);
    job.software = software_of(row);
    const StageMemory stage = memory(job, none).stages.back();
    const double steady = std::stod(row.at("steady_bytes")), peak = std::stod(row.at("peak_bytes"));
    const double steady_error = percent(stage.steady_bytes, steady);
    const double peak_error = percent(stage.total_bytes, peak);
    const bool complete = row.at("complete") == "yes";
    fmt::print("{:8} {:9.1f} {:9.1f} {:+7.2f}  {:9.1f} {:9.1f} {:+7.2f}{}\n", row.at("id"),
               stage.steady_bytes / 1e6, steady / 1e6, steady_error, stage.total_bytes / 1e6, peak / 1e6,
               peak_error, complete ? "" : "  (GPU count not printed)");
    if (!complete) continue;
    EXPECT_LT(std::abs(steady_error), 3) << row.at("id");
    EXPECT_LT(std::abs(peak_error), 10) << row.at("id");
    steady_sum += std::abs(steady_error);
    peak_sum += std::abs(peak_error);
    ++count;
  }
  ASSERT_GT(count, 40);
  fmt::print("{} complete rows: steady {:.2f} %, peak {:.2f} % in the mean\n", count, steady_sum / count,
             peak_sum / count);
  EXPECT_LT(steady_sum / count, 1);
  EXPECT_LT(peak_sum / count, 2);
}

}  // namespace
}  // namespace sextant::training
