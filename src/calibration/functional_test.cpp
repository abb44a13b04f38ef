#include "calibration/functional_test.h"

#include "calibration/row_words.h"
#include "parallel/stages.h"

namespace sextant::calibration {
namespace {

/// The row's cells and the arguments in its `extra`.
class TestArguments {
 public:
  explicit TestArguments(const MeasuredRow& row) : row_(row) {}

  bool has(std::string_view text) const { return row_.extra.find(text) != std::string::npos; }
  int number(std::string_view label, int fallback) const {
    return number_after(row_.extra, label).value_or(fallback);
  }
  /// What follows `label` up to the next space or semicolon.
  std::string word(std::string_view label) const {
    const std::size_t at = row_.extra.find(label);
    if (at == std::string::npos) return {};
    const std::size_t begin = at + label.size();
    return row_.extra.substr(begin, row_.extra.find_first_of(" ;", begin) - begin);
  }

 private:
  const MeasuredRow& row_;
};

int cell(const MeasuredRow::Count& count, int fallback) {
  return count ? static_cast<int>(*count) : fallback;
}

model::Attention attention_of(const MeasuredRow& row, const TestArguments& arguments) {
  model::Attention a;
  a.heads = row.heads.value_or(1);
  a.kv_heads = row.kv_heads.value_or(a.heads);
  a.head_dim = arguments.number("kv-channels=", static_cast<int>(row.hidden.value_or(1) / a.heads));
  a.value_head_dim = a.head_dim;
  a.query_key_norm = arguments.has("qk-layernorm");
  a.qkv_bias = a.output_bias = arguments.has("linear bias on");
  if (arguments.has("multi-latent-attention")) {
    a.kind = model::AttentionKind::kMultiLatent;
    a.query_latent_rank = arguments.number("q-lora-rank=", 0);
    a.kv_latent_rank = arguments.number("kv-lora-rank=", 0);
    a.head_dim = arguments.number("qk-head-dim=", 0);
    a.rotary_head_dim = arguments.number("qk-pos-emb-head-dim=", 0);
    a.value_head_dim = arguments.number("v-head-dim=", 0);
  }
  return a;
}

model::LayerClass mixture_of(const model::LayerClass& dense, const MeasuredRow& row,
                             const TestArguments& arguments) {
  model::LayerClass moe = dense;
  moe.name = "moe";
  moe.mlp.kind = model::MlpKind::kMixtureOfExperts;
  moe.mlp.experts = *row.experts;
  moe.mlp.experts_per_token = row.experts_per_token.value_or(2);
  moe.mlp.expert_ffn = row.expert_ffn.value_or(dense.mlp.ffn);
  moe.mlp.shared_expert_ffn = arguments.number("moe-shared-expert-intermediate-size=", 0);
  moe.mlp.router_bias = arguments.has("moe-router-enable-expert-bias");
  return moe;
}

std::shared_ptr<const model::Model> model_of_test(const MeasuredRow& row, const TestArguments& arguments) {
  auto m = std::make_shared<model::Model>();
  m->name = row.model;
  m->hidden = row.hidden.value_or(0);
  m->vocabulary = row.vocabulary.value_or(0);
  m->norm = arguments.has("RMSNorm") ? model::Norm::kRmsNorm : model::Norm::kLayerNorm;
  m->positions =
      arguments.has("position learned_absolute") ? model::Positions::kLearned : model::Positions::kRotary;
  m->maximum_positions = arguments.number("position learned_absolute max ", 0);
  m->tied_embeddings = !arguments.has("untied");
  if (arguments.has("dropout 0.1/0.1")) m->hidden_dropout = m->attention_dropout = 0.1;

  model::LayerClass dense;
  dense.name = "dense";
  dense.attention = attention_of(row, arguments);
  dense.mlp.activation = arguments.has("squared ReLU") ? model::Activation::kSquaredRelu
                         : arguments.has("SwiGLU")     ? model::Activation::kSwiglu
                                                       : model::Activation::kGelu;
  dense.mlp.bias = arguments.has("linear bias on");
  dense.mlp.ffn = row.ffn.value_or(4 * m->hidden);
  m->classes = {dense};
  const auto layers = static_cast<std::size_t>(row.layers.value_or(0));
  m->class_of_layer.assign(layers, 0);
  if (row.experts) {
    m->classes.push_back(mixture_of(dense, row, arguments));
    // "moe-layer-freq=([0]*3+[1]*11)": leading dense layers.
    const auto dense_layers = static_cast<std::size_t>(arguments.number("moe-layer-freq=([0]*", 0));
    for (std::size_t i = dense_layers; i < layers; ++i) m->class_of_layer[i] = 1;
  }
  m->mtp.depths = arguments.number("mtp-num-layers=", 0);
  m->mtp.layer_class = static_cast<int>(m->classes.size()) - 1;
  return m;
}

layers::Software software_of_test(const TestArguments& arguments, int tp) {
  layers::Software s;
  s.framework = "megatron-core";
  s.transformer_engine = !arguments.has("transformer-impl=local");
  s.attention = !s.transformer_engine                        ? layers::AttentionKernel::kLocal
                : arguments.has("attention backend unfused") ? layers::AttentionKernel::kUnfused
                                                             : layers::AttentionKernel::kFused;
  // Figures of "frozen" tests were recorded with older code, whose un-permute did not keep its source.
  s.deterministic = arguments.has("deterministic-mode") && !arguments.has("frozen");
  s.grouped_gemm = arguments.has("moe-grouped-gemm");
  s.gradient_accumulation_fusion = !arguments.has("no-gradient-accumulation-fusion");
  s.attention_mask_from_loader = !arguments.has("no-create-attention-mask-in-dataloader");
  s.permute_fusion = arguments.has("moe-permute-fusion");
  s.router_fp32 = arguments.has("moe-router-dtype=fp32");
  s.expandable_segments = arguments.has("expandable_segments");
  if (arguments.has("defer-embedding-wgrad-compute")) {
    s.defer_embedding_weight_gradient = arguments.number("wgrad-deferral-limit=", -1);
  }
  if (arguments.has("grad-reduce-in-bf16")) s.gradient_reduce_bytes = 2;
  s.vocabulary_divisor = arguments.number("padded to a multiple of ", 128 * tp) / tp;
  return s;
}

parallel::Sharding sharding_of_test(const TestArguments& arguments) {
  if (arguments.has("Megatron-FSDP optim_grads_params")) return parallel::Sharding::kMegatronFsdpParameters;
  if (arguments.has("distributed optimizer (ZeRO-1)")) return parallel::Sharding::kDistributedOptimizer;
  return parallel::Sharding::kNone;
}

parallel::MoeDispatch dispatch_of_test(const TestArguments& arguments) {
  if (arguments.has("hybridep")) return parallel::MoeDispatch::kHybridEp;
  if (arguments.has("moe-flex-dispatcher-backend=deepep")) return parallel::MoeDispatch::kDeepEp;
  if (arguments.has("moe-token-dispatcher-type=alltoall")) return parallel::MoeDispatch::kAllToAll;
  return parallel::MoeDispatch::kAllGather;
}

/// Degrees, batch and stage split. Returns why not, or an empty text.
std::string set_degrees(const MeasuredRow& row, const TestArguments& arguments, parallel::Layout& l) {
  l.tp = cell(row.tp, 1);
  l.pp = cell(row.pp, 1);
  l.vpp = cell(row.vpp, 1);
  l.cp = cell(row.cp, 1);
  l.ep = cell(row.ep, 1);
  l.etp = row.experts ? arguments.number("expert-tensor-parallel-size=", l.tp) : 1;
  if (!row.gpus) return "the GPU count is not printed";
  l.world = static_cast<int>(*row.gpus);
  l.micro_batch = cell(row.micro_batch, 1);
  l.global_batch = row.global_batch.value_or(1);
  l.sequence_tokens = row.sequence_tokens.value_or(1);
  l.microbatch_group = arguments.number("microbatch-group-size-per-virtual-pipeline-stage=", 0);
  l.sequence_parallel = row.sequence_parallel == "yes" && l.tp > 1;
  l.split.first_layers = arguments.number("decoder-first-pipeline-num-layers=", 0);
  l.split.last_layers = arguments.number("decoder-last-pipeline-num-layers=", 0);
  l.split.layout = arguments.word("pipeline-model-parallel-layout=");
  if (!l.split.layout.empty()) {
    const auto stages = parallel::parse_stage_layout(l.split.layout);
    if (const auto* reason = std::get_if<std::string>(&stages)) return *reason;
    l.vpp = static_cast<int>(std::get<parallel::StageTable>(stages).size()) / l.pp;
  }
  l.schedule = l.vpp > 1 ? pipeline::Algorithm::kInterleaved : pipeline::Algorithm::kOneForwardOneBackward;
  return {};
}

}  // namespace

std::variant<training::Job, std::string> functional_test_job(const MeasuredRow& row) {
  const TestArguments arguments(row);
  if (arguments.has("hybrid-layer-pattern")) return "state-space hybrids are not modelled";
  if (arguments.has("vocab not derivable")) return "the vocabulary is not printed";
  training::Job job;
  parallel::Layout& l = job.layout;
  if (std::string reason = set_degrees(row, arguments, l); !reason.empty()) return reason;
  const auto recompute = recompute_words(row.recompute);
  const auto precision = precision_words(row.precision);
  if (!recompute || !precision) return "recomputation or precision cannot be read";
  l.recompute = recompute->recompute;
  l.precision = precision->precision;
  l.fp8_recipe = precision->recipe;
  l.fp8_parameters = arguments.has("fp8-param-gather");
  l.moe_dispatch = dispatch_of_test(arguments);
  l.sharding = sharding_of_test(arguments);
  if (arguments.has("optimizer muon")) l.optimizer.kind = parallel::OptimizerKind::kMuon;
  l.optimizer.instances = arguments.number("num-distributed-optimizer-instances=", 1);
  l.overlap.parameter_gather = arguments.has("overlap-param-gather");
  l.overlap.gradient_reduce = arguments.has("overlap-grad-reduce");
  if (arguments.has("cross-entropy-loss-fusion")) l.loss = parallel::Loss::kNativeFused;
  job.model = model_of_test(row, arguments);
  job.software = software_of_test(arguments, l.tp);
  job.backend = "megatron-core";
  return job;
}

}  // namespace sextant::calibration
