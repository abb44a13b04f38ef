#include "backends/rule_knobs.h"

#include <algorithm>
#include <array>

namespace sextant::backends {
namespace {

struct Name {
  std::string_view name;
  std::uint32_t bits;
};

constexpr std::uint32_t kRanks = kKnobTp | kKnobPp | kKnobCp | kKnobOther;
constexpr std::uint32_t kMicrobatches = kRanks | kKnobMicroBatch;
constexpr std::uint32_t kDeal = kKnobPp | kKnobVpp | kKnobSplit;

constexpr std::array kShortNames{
    Name{"tp", kKnobTp},
    Name{"pp", kKnobPp},
    Name{"vpp", kKnobVpp},
    Name{"cp", kKnobCp},
    Name{"ep", kKnobEp},
    Name{"etp", kKnobEtp},
    Name{"mbs", kKnobMicroBatch},
    Name{"schedule", kKnobSchedule},
    Name{"group", kKnobGroup},
    Name{"microbatch_group_size", kKnobGroup},
    Name{"first_layers", kKnobSplit},
    Name{"last_layers", kKnobSplit},
    Name{"layout", kKnobSplit},
    Name{"sequence_parallel", kKnobSequenceParallel},
    Name{"recompute", kKnobRecompute},
    Name{"dispatch", kKnobDispatch},
    Name{"sync_free", kKnobSyncFree},
    Name{"sharding", kKnobSharding},
    Name{"loss", kKnobLoss},
    Name{"overlap_grad_reduce", kKnobOverlapGradientReduce},
    Name{"overlap_param_gather", kKnobOverlapParameterGather},
    Name{"overlap_tp", kKnobOverlapTensorParallel},
    Name{"overlap_p2p", kKnobOverlapPointToPoint},
    Name{"overlap_moe", kKnobOverlapMoe},
    Name{"precision", kKnobPrecision},
};

// What each rule's `violated` reads of the layout (the model, the cluster and the software are the same for a
// search).
constexpr std::array kReads{
    Name{"degrees-positive", kMicrobatches | kKnobVpp | kKnobEp | kKnobEtp | kKnobGroup},
    Name{"world-by-cluster", kKnobOther},
    Name{"world-by-model-parallel", kRanks},
    Name{"world-by-expert-parallel", kKnobPp | kKnobEp | kKnobEtp | kKnobOther},
    Name{"heads-by-tp", kKnobTp},
    Name{"kv-heads-by-tp", kKnobTp},
    Name{"ffn-by-tp", kKnobTp},
    Name{"sequence-by-cp", kKnobCp | kKnobOther},
    Name{"sequence-by-tp", kKnobTp | kKnobCp | kKnobSequenceParallel | kKnobOther},
    Name{"heads-by-cp", kKnobTp | kKnobCp | kKnobOther},
    Name{"window-by-ring-cp", kKnobCp | kKnobOther},
    Name{"sequence-by-positions", kKnobOther},
    Name{"schedule-launchable", kKnobSchedule},
    Name{"schedule-chunks", kKnobSchedule | kKnobVpp},
    Name{"schedule-shape", kMicrobatches | kKnobVpp | kKnobSchedule | kKnobGroup},
    Name{"vpp-by-pp", kKnobPp | kKnobVpp | kKnobOverlapPointToPoint},
    Name{"layers-by-stages", kDeal},
    Name{"split-exclusive", kKnobSplit},
    Name{"layout-string-version", kKnobSplit},
    Name{"mtp-placement", kDeal},
    Name{"mtp-with-cp", kKnobCp},
    Name{"batch-by-dp", kMicrobatches},
    Name{"moe-needs-sequence-parallel", kKnobTp | kKnobSequenceParallel},
    Name{"experts-by-ep", kKnobEp},
    Name{"ep-needs-experts", kKnobEp},
    Name{"ep-refuses-fp16", kKnobEp | kKnobPrecision},
    Name{"grouped-gemm-needs-bf16", kKnobPrecision},
    Name{"expert-ffn-by-etp", kKnobEtp},
    Name{"expert-bias-by-etp", kKnobEtp},
    Name{"deepep-needs-experts", kKnobDispatch},
    Name{"deepep-needs-ranks", kKnobDispatch | kKnobEp | kKnobEtp},
    Name{"deepep-needs-fp32-router", kKnobDispatch},
    Name{"hybridep-version", kKnobDispatch},
    Name{"sync-free-only-in-primus", kKnobSyncFree},
    Name{"sync-free-range", kKnobSyncFree},
    Name{"sync-free-needs-experts", kKnobSyncFree},
    Name{"sync-free-refuses-etp", kKnobSyncFree | kKnobEtp},
    Name{"moe-overlap-version", kKnobOverlapMoe},
    Name{"moe-overlap-needs-ep", kKnobOverlapMoe | kKnobEp},
    Name{"moe-overlap-needs-vpp", kKnobOverlapMoe | kKnobPp | kKnobVpp},
    Name{"moe-overlap-dispatcher", kKnobOverlapMoe | kKnobDispatch},
    Name{"moe-overlap-refuses-recompute", kKnobOverlapMoe | kKnobRecompute},
    Name{"moe-overlap-mtp", kKnobOverlapMoe},
    Name{"recompute-selective-method", kKnobRecompute},
    Name{"recompute-full-method", kKnobRecompute},
    Name{"recompute-layers", kKnobRecompute | kDeal},
    Name{"recompute-layer-ids", kKnobRecompute},
    Name{"recompute-every-nth", kKnobRecompute},
    Name{"recompute-module-exists", kKnobRecompute},
    Name{"recompute-shared-experts-version", kKnobRecompute},
    Name{"recompute-with-fp8", kKnobRecompute | kKnobPrecision},
    Name{"distributed-activations-refuse-sequence-parallel",
         kKnobRecompute | kKnobTp | kKnobSequenceParallel},
    Name{"distributed-activations-need-full-recompute", kKnobRecompute | kKnobTp},
    Name{"recompute-with-split-weight-gradient", kKnobRecompute | kKnobSchedule},
    Name{"cuda-graphs-refuse-full-recompute", kKnobRecompute | kKnobOther},
    Name{"cuda-graphs-refuse-selective-recompute", kKnobRecompute | kKnobOther},
    Name{"cuda-graphs-refuse-expandable-segments", kKnobOther},
    Name{"activation-offload-refuses-pipeline", kKnobPp | kKnobOther},
    Name{"activation-offload-refuses-recompute", kKnobRecompute | kKnobOther},
    Name{"activation-offload-refuses-cuda-graphs", kKnobOther},
    Name{"activation-offload-fraction", kKnobOther},
    Name{"fsdp2-refuses-pipeline", kKnobSharding | kKnobPp},
    Name{"fsdp2-refuses-experts", kKnobSharding | kKnobEp},
    Name{"fsdp2-refuses-fp16", kKnobSharding | kKnobPrecision},
    Name{"fsdp2-refuses-tied-embeddings", kKnobSharding},
    Name{"fsdp2-refuses-gradient-accumulation-fusion", kKnobSharding},
    Name{"hsdp-shard-by-dp", kKnobSharding | kRanks},
    Name{"megatron-fsdp-refuses-gradient-accumulation-fusion", kKnobSharding},
    Name{"optimizer-instances-by-dp", kKnobSharding | kRanks | kKnobEp | kKnobEtp},
    Name{"param-gather-overlap-needs-sharding", kKnobOverlapParameterGather | kKnobSharding},
    Name{"param-gather-overlap-needs-grad-overlap",
         kKnobOverlapParameterGather | kKnobOverlapGradientReduce | kKnobSharding},
    Name{"tp-overlap-needs-sequence-parallel", kKnobOverlapTensorParallel | kKnobTp | kKnobSequenceParallel},
    Name{"optimizer-offload-needs-distributed-optimizer", kKnobSharding},
    Name{"optimizer-offload-needs-precision-aware", kKnobSharding},
    Name{"optimizer-offload-fraction", kKnobSharding},
    Name{"precision-aware-needs-distributed-optimizer", kKnobSharding},
    Name{"state-bytes-need-precision-aware", kKnobSharding | kKnobPrecision},
    Name{"muon-version", kKnobSharding},
    Name{"muon-refuses-fsdp", kKnobSharding},
    Name{"muon-refuses-overlap", kKnobSharding | kKnobOverlapGradientReduce | kKnobOverlapParameterGather},
    Name{"fp8-parameters-need-fp8", kKnobPrecision | kKnobOther},
    Name{"fp8-parameters-need-sharding", kKnobSharding | kKnobPrecision | kKnobOther},
    Name{"mxfp8-refuses-fp8-parameters", kKnobPrecision | kKnobOther},
    Name{"precision-by-accelerator", kKnobPrecision},
    Name{"fp4-version", kKnobPrecision},
    // Normalised ones.
    Name{"schedule-by-vpp", kKnobSchedule | kKnobVpp},
    Name{"sequence-parallel-at-tp-1", kKnobSequenceParallel | kKnobTp},
    Name{"p2p-overlap-without-vpp", kKnobOverlapPointToPoint | kKnobVpp | kKnobPp},
    Name{"sync-free-implies-deepep", kKnobSyncFree | kKnobDispatch},
    Name{"recompute-block-beyond-stage", kKnobRecompute | kDeal},
    Name{"fsdp2-without-fp8-parameters", kKnobSharding | kKnobPrecision | kKnobOther},
    Name{"megatron-fsdp-overlaps", kKnobSharding | kKnobOverlapGradientReduce | kKnobOverlapParameterGather},
    Name{"ep-without-experts", kKnobEp},
};

constexpr std::array kChanges{
    Name{"schedule-by-vpp", kKnobSchedule},
    Name{"sequence-parallel-at-tp-1", kKnobSequenceParallel},
    Name{"p2p-overlap-without-vpp", kKnobOverlapPointToPoint},
    Name{"sync-free-implies-deepep", kKnobDispatch},
    Name{"recompute-block-beyond-stage", kKnobRecompute},
    Name{"fsdp2-without-fp8-parameters", kKnobPrecision | kKnobOther},
    Name{"megatron-fsdp-overlaps", kKnobOverlapGradientReduce | kKnobOverlapParameterGather},
    Name{"ep-without-experts", kKnobEp},
    Name{"stages-weigh-embedding-and-head", kKnobSplit},
    Name{"group-by-rounds", kKnobGroup},
};

template <typename Table>
std::uint32_t look_up(const Table& table, std::string_view name, std::uint32_t otherwise) {
  const auto place = std::ranges::find(table, name, &Name::name);
  return place == table.end() ? otherwise : place->bits;
}

}  // namespace

std::uint32_t knob_bit(std::string_view short_name) { return look_up(kShortNames, short_name, kKnobOther); }
std::uint32_t knobs_read(std::string_view rule) { return look_up(kReads, rule, kAllKnobs); }
std::uint32_t knobs_changed(std::string_view rule) { return look_up(kChanges, rule, 0); }

}  // namespace sextant::backends
