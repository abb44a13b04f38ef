// Rules that only torchtitan has: its meshes, its own way of dealing stages, its activation checkpointing.

#include <fmt/core.h>

#include <algorithm>

#include "backends/rule_entry.h"
#include "backends/stage_counts.h"
#include "parallel/stages.h"

namespace sextant::backends {
namespace {

using parallel::MoeDispatch;
using parallel::RecomputeMethod;

constexpr int kRelease2 = 2;

/// Ranks over which dense parameters are spread below tensor parallelism: the shard group, times TP.
std::int64_t sparse_region(const parallel::Layout& l) {
  const std::int64_t shard = l.fsdp_shard > 0 ? l.fsdp_shard : std::int64_t{l.dp()} * l.cp;
  return shard * l.tp;
}

bool undealt(const Job& job) {
  const parallel::Layout& layout = job.layout;
  if (layout.pp < 1 || layout.vpp < 1) return false;  // another rule speaks
  return split_conflicts(layout.split) ||
         !parallel::can_deal_layers(layer_count(job), job.model->mtp.depths, layout);
}

bool unknown_recompute(const parallel::Recompute& r) {
  const bool blocks = r.method == RecomputeMethod::kBlock;
  const bool groups = r.method == RecomputeMethod::kUniform && r.layers != 1;
  return blocks || groups || !r.layer_ids.empty() || r.distribute_saved_activations;
}

/// Rounds of ScheduleInterleaved1F1B.
std::int64_t rounds(const parallel::Layout& l) {
  return l.pp > 0 ? std::max<std::int64_t>(1, l.microbatches() / l.pp) : 1;
}

constexpr Entry kRules[] = {
    {.backends = kTorchtitanOnly,
     .before = kRelease2,
     .rule = {
         .name = "ep-version",
         .summary = "expert parallelism exists from torchtitan 0.2 on",
         .source = "torchtitan 0.1 distributed/parallel_dims.py",
         .violated = [](const Job& job) { return job.layout.ep > 1; },
         .message = [](const Job& job) { return fmt::format("EP {} with torchtitan 0.1", job.layout.ep); },
         .fix = [](const Job&) { return std::string("set ep to 1, or use torchtitan 0.2 or newer"); }}},

    {.backends = kTorchtitanOnly,
     .since = kRelease2,
     .rule = {.name = "world-by-expert-parallel",
              .summary = "EP (x ETP) divides the shard group times TP, from which expert ranks are borrowed",
              .source = "torchtitan distributed/parallel_dims.py ParallelDims._validate",
              .violated =
                  [](const Job& job) {
                    const parallel::Layout& l = job.layout;
                    return has_experts(job) && !splits(sparse_region(l), std::int64_t{l.ep} * l.etp);
                  },
              .message =
                  [](const Job& job) {
                    const parallel::Layout& l = job.layout;
                    return fmt::format("EP {} x ETP {} does not divide the shard group times TP {} = {}",
                                       l.ep, l.etp, l.tp, sparse_region(l));
                  },
              .fix =
                  [](const Job& job) {
                    std::vector<std::int64_t> degrees =
                        divisors(sparse_region(job.layout) / std::max(job.layout.etp, 1));
                    std::erase_if(degrees, [&](std::int64_t ep) { return !splits(common_experts(job), ep); });
                    return choose("ep", degrees, job.layout.ep);
                  }}},

    {.backends = kTorchtitanOnly,
     .before = kTorchtitanMain,
     .rule = {
         .name = "etp-by-tp",
         .summary = "expert tensor parallelism is 1 or TP",
         .source = "torchtitan 0.2 distributed/parallel_dims.py ParallelDims._validate",
         .violated =
             [](const Job& job) {
               return job.layout.ep > 1 && job.layout.etp != 1 && job.layout.etp != job.layout.tp;
             },
         .message =
             [](const Job& job) { return fmt::format("ETP {} with TP {}", job.layout.etp, job.layout.tp); },
         .fix = [](const Job& job) { return fmt::format("set etp to 1 or {}", job.layout.tp); }}},

    {.backends = kTorchtitanOnly,
     .since = kTorchtitanMain,
     .rule = {.name = "etp-by-tp",
              .summary = "there is no expert tensor parallelism any more",
              .source = "torchtitan config/configs.py ParallelismConfig",
              .violated = [](const Job& job) { return job.layout.etp > 1 && has_experts(job); },
              .message = [](const Job& job) { return fmt::format("ETP {}", job.layout.etp); },
              .fix = [](const Job&) { return std::string("set etp to 1"); }}},

    {.backends = kTorchtitanOnly,
     .before = kTorchtitanMain,
     .rule = {.name = "sequence-by-tp",
              .summary = "the sequence is a multiple of TP x 2 x CP (stricter than Megatron-LM)",
              .source = "torchtitan distributed/parallel_dims.py ParallelDims.seq_len_divisor",
              .violated =
                  [](const Job& job) {
                    return !splits(job.layout.sequence_tokens,
                                   2 * std::int64_t{job.layout.cp} * job.layout.tp);
                  },
              .message =
                  [](const Job& job) {
                    const parallel::Layout& l = job.layout;
                    return fmt::format("sequence {} is no multiple of TP {} x 2 x CP {} = {}",
                                       l.sequence_tokens, l.tp, l.cp, 2 * std::int64_t{l.cp} * l.tp);
                  },
              .fix =
                  [](const Job& job) {
                    const parallel::Layout& l = job.layout;
                    return nearest_multiples("seq", 2 * std::int64_t{l.cp} * l.tp, l.sequence_tokens);
                  }}},

    {.backends = kTorchtitanOnly,
     .since = kTorchtitanMain,
     .rule = {
         .name = "sequence-by-tp",
         .summary =
             "a micro-batch's tokens are a multiple of TP (with sequence parallelism) x 2 x CP (with CP > 1)",
         .source = "torchtitan trainer.py Trainer.__init__",
         .violated =
             [](const Job& job) {
               const parallel::Layout& l = job.layout;
               const std::int64_t tokens = l.sequence_tokens * l.micro_batch;
               return !splits(tokens,
                              std::int64_t{l.sequence_parallel ? l.tp : 1} * (l.cp > 1 ? 2 * l.cp : 1));
             },
         .message =
             [](const Job& job) {
               const parallel::Layout& l = job.layout;
               return fmt::format("{} tokens of a micro-batch with TP {}, sequence parallelism {} and CP {}",
                                  l.sequence_tokens * l.micro_batch, l.tp, l.sequence_parallel ? "on" : "off",
                                  l.cp);
             },
         .fix =
             [](const Job& job) {
               const parallel::Layout& l = job.layout;
               return nearest_multiples(
                   "seq", std::int64_t{l.sequence_parallel ? l.tp : 1} * (l.cp > 1 ? 2 * l.cp : 1),
                   l.sequence_tokens);
             }}},

    {.backends = kTorchtitanOnly,
     .rule = {
         .name = "layers-by-stages",
         .summary =
             "layers deal to PP x VPP stages; uneven ones as torchtitan deals them, with embedding and head "
             "weighing one layer each",
         .source = "torchtitan distributed/pipeline_parallel.py _generate_llm_fqn_per_model_part",
         .violated = undealt,
         .message =
             [](const Job& job) {
               return fmt::format("{} layers do not deal to PP {} x VPP {} stages", layer_count(job),
                                  job.layout.pp, job.layout.vpp);
             },
         .fix =
             [](const Job& job) {
               return fmt::format("choose PP x VPP of at most {}, or a layout string that fits",
                                  layer_count(job) + 2);
             }}},

    {.backends = kTorchtitanOnly,
     .rule = {
         .name = "microbatches-by-rounds",
         .summary = "interleaved: micro-batches are a multiple of the number of rounds, M / PP rounded down",
         .source = "PyTorch distributed/pipelining/schedules.py ScheduleInterleaved1F1B",
         .violated =
             [](const Job& job) {
               const parallel::Layout& l = job.layout;
               return l.schedule == pipeline::Algorithm::kInterleaved && !splits(l.microbatches(), rounds(l));
             },
         .message =
             [](const Job& job) {
               return fmt::format("{} micro-batches in {} rounds of PP {}", job.layout.microbatches(),
                                  rounds(job.layout), job.layout.pp);
             },
         .fix =
             [](const Job& job) {
               return nearest_multiples("gbs", sequences_per_microbatch(job.layout) * job.layout.pp,
                                        job.layout.global_batch);
             }}},

    {.backends = kTorchtitanOnly,
     .since = kRelease2,
     .rule = {
         .name = "tied-embeddings-by-pp",
         .summary = "tied embeddings run only without a pipeline",
         .source = "torchtitan models/common/decoder.py",
         .violated = [](const Job& job) { return job.layout.pp > 1 && job.model->tied_embeddings; },
         .message = [](const Job& job) { return fmt::format("tied embeddings with PP {}", job.layout.pp); },
         .fix = [](const Job&) { return std::string("set pp to 1"); }}},

    {.backends = kTorchtitanOnly,
     .rule = {
         .name = "sharding-available",
         .summary = "torchtitan shards by FSDP2 or not at all",
         .source = "torchtitan distributed/fsdp.py",
         .violated =
             [](const Job& job) {
               return job.layout.sharding != parallel::Sharding::kNone &&
                      job.layout.sharding != parallel::Sharding::kFsdp2;
             },
         .message =
             [](const Job& job) { return fmt::format("sharding {}", parallel::name(job.layout.sharding)); },
         .fix = [](const Job&) { return std::string("set sharding to fsdp2"); }}},

    {.backends = kTorchtitanOnly,
     .rule = {.name = "hsdp-shard-by-dp",
              .summary = "an FSDP shard group divides the data-parallel ranks (DP x CP)",
              .source = "torchtitan distributed/parallel_dims.py ParallelDims._validate",
              .violated =
                  [](const Job& job) {
                    const parallel::Layout& l = job.layout;
                    return l.fsdp_shard < 0 ||
                           (l.fsdp_shard > 0 && !splits(std::int64_t{l.dp()} * l.cp, l.fsdp_shard));
                  },
              .message =
                  [](const Job& job) {
                    return fmt::format("a shard group of {} among {} data-parallel ranks",
                                       job.layout.fsdp_shard, std::int64_t{job.layout.dp()} * job.layout.cp);
                  },
              .fix =
                  [](const Job& job) {
                    return choose("fsdp_shard", divisors(std::int64_t{job.layout.dp()} * job.layout.cp),
                                  job.layout.fsdp_shard);
                  }}},

    {.backends = kTorchtitanOnly,
     .rule = {.name = "precision-available",
              .summary = "torchtitan trains in bf16, fp32 and FP8 formats, not in fp16",
              .source = "torchtitan config/configs.py TrainingConfig.mixed_precision_param",
              .violated = [](const Job& job) { return job.layout.precision == cluster::Precision::kFp16; },
              .message = [](const Job&) { return std::string("precision fp16"); },
              .fix = [](const Job&) { return std::string("set precision to bf16"); }}},

    {.backends = kTorchtitanOnly,
     .rule = {
         .name = "recompute-forms",
         .summary = "activation checkpointing covers all layers, every n-th layer or selected operations",
         .source = "torchtitan distributed/activation_checkpoint.py",
         .violated = [](const Job& job) { return unknown_recompute(job.layout.recompute); },
         .message =
             [](const Job& job) {
               const parallel::Recompute& r = job.layout.recompute;
               return fmt::format("recompute {} with method {} and {} layers", parallel::name(r.granularity),
                                  parallel::name(r.method), r.layers);
             },
         .fix =
             [](const Job&) {
               return std::string("set recompute to none, full, selective or selective:every:N");
             }}},

    {.backends = kTorchtitanOnly,
     .rule = {.name = "dispatch-available",
              .summary = "tokens are exchanged by all-to-all, DeepEP (0.2) or HybridEP (main)",
              .source = "torchtitan models/common/token_dispatcher.py; 0.2 config/job_config.py "
                        "expert_parallel_comm_backend",
              .violated = [](const Job& job) { return job.layout.moe_dispatch == MoeDispatch::kAllGather; },
              .message =
                  [](const Job& job) {
                    return fmt::format("dispatch {}", parallel::name(job.layout.moe_dispatch));
                  },
              .fix = [](const Job&) { return std::string("set dispatch to alltoall"); }}},

    {.backends = kTorchtitanOnly,
     .before = kTorchtitanMain,
     .rule = {.name = "hybridep-version",
              .summary = "the HybridEP dispatcher is not in releases up to 0.2",
              .source = "torchtitan 0.2 config/job_config.py expert_parallel_comm_backend",
              .violated = [](const Job& job) { return job.layout.moe_dispatch == MoeDispatch::kHybridEp; },
              .message = [](const Job&) { return std::string("dispatch hybridep"); },
              .fix = [](const Job&) { return std::string("set dispatch to deepep or alltoall"); }}},

    {.backends = kTorchtitanOnly,
     .rule = {
         .name = "deepep-needs-ranks",
         .summary = "DeepEP needs EP > 1 and ETP 1",
         .source = "torchtitan 0.2 models/deepseek_v3/infra/parallelize.py",
         .violated =
             [](const Job& job) {
               return uses_deepep(job.layout) && has_experts(job) &&
                      (job.layout.ep <= 1 || job.layout.etp > 1);
             },
         .message =
             [](const Job& job) {
               return fmt::format("DeepEP with EP {} and ETP {}", job.layout.ep, job.layout.etp);
             },
         .fix =
             [](const Job&) { return std::string("set ep above 1 and etp to 1, or dispatch to alltoall"); }}},

    {.backends = kTorchtitanOnly,
     .rule = {
         .name = "tp-overlap-needs-compile",
         .summary = "asynchronous tensor parallelism needs the compiled model",
         .source = "torchtitan config/configs.py CompileConfig",
         .violated =
             [](const Job& job) { return job.layout.overlap.tensor_parallel && !job.software.compiled; },
         .message =
             [](const Job&) { return std::string("overlap of tensor-parallel traffic without compile"); },
         .fix = [](const Job&) { return std::string("turn compile on, or set overlap_tp to false"); }}},

    {.backends = kTorchtitanOnly,
     .before = kTorchtitanMain,
     .rule = {.name = "muon-version",
              .summary = "Muon is not in releases up to 0.2",
              .source = "torchtitan 0.2 components/optimizer.py",
              .violated =
                  [](const Job& job) { return job.layout.optimizer.kind == parallel::OptimizerKind::kMuon; },
              .message = [](const Job&) { return std::string("optimizer muon"); },
              .fix = [](const Job&) { return std::string("set optimizer to adam"); }}},

    {.backends = kTorchtitanOnly,
     .since = kTorchtitanMain,
     .rule = {.name = "cuda-graphs-refuse-pipeline",
              .summary = "CUDA graphs run without a pipeline",
              .source = "torchtitan trainer.py Trainer.Config._validate_cuda_graphs",
              .violated = [](const Job& job) { return job.layout.cuda_graphs && job.layout.pp > 1; },
              .message = [](const Job& job) { return fmt::format("CUDA graphs with PP {}", job.layout.pp); },
              .fix = [](const Job&) { return std::string("set cuda_graphs to false, or pp to 1"); }}},

    {.backends = kTorchtitanOnly,
     .since = kTorchtitanMain,
     .rule = {
         .name = "cuda-graphs-refuse-synchronising-dispatch",
         .summary = "CUDA graphs with EP > 1 need a dispatcher that does not wait for the host (HybridEP)",
         .source = "torchtitan trainer.py Trainer.Config._validate_cuda_graphs",
         .violated =
             [](const Job& job) {
               return job.layout.cuda_graphs && job.layout.ep > 1 && has_experts(job) &&
                      job.layout.moe_dispatch != MoeDispatch::kHybridEp;
             },
         .message =
             [](const Job& job) {
               return fmt::format("CUDA graphs with EP {} and dispatch {}", job.layout.ep,
                                  parallel::name(job.layout.moe_dispatch));
             },
         .fix = [](const Job&) { return std::string("set cuda_graphs to false, or dispatch to hybridep"); }}},
};

}  // namespace

std::span<const Entry> torchtitan_rules() { return kRules; }

}  // namespace sextant::backends
