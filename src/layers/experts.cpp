// Mixture of experts: router, dispatch, experts, combine (Megatron-LM core/transformer/moe).
//
// Every rank brings its own local_tokens; balanced routing sends it as many token copies as it sends out,
// whatever the expert-parallel degree: n = top_k · local_tokens · etp, times the layout's skew on the most
// loaded rank. Dispatchers:
//   all-to-all   permute, all-to-all of the copies over EP (and all-gather over ETP), sort by expert; back
//   the same way all-gather   every rank of ETP·EP sees all tokens and picks those of its experts;
//   reduce-scatter back DeepEP, HybridEP   a token travels once to each domain (and once to each rank there),
//   so NICs carry fewer copies
// Backward mirrors forward: the gradient of a dispatch is a combine of the same size.

#include <algorithm>
#include <cmath>

#include "layers/mlp.h"

namespace sextant::layers {

using cost::Collective;
using cost::CollectiveKind;
using cost::GroupKind;
using cost::Part;
using parallel::MoeDispatch;
using parallel::RecomputeModule;

double expected_remote_domains(int domains, double top_k, double group_limit) {
  if (domains <= 1) return 0;
  const double n = domains;
  double distinct = n * (1 - std::pow(1 - 1 / n, top_k));
  if (group_limit > 0) distinct = std::min(distinct, group_limit);
  return distinct * (n - 1) / n;
}

double expected_ranks(int ranks, double top_k, double group_share) {
  const double n = std::max(1.0, ranks * group_share);
  return n * (1 - std::pow(1 - 1 / n, top_k));
}

namespace {

/// Share of the routing groups that a token may reach.
double group_share(const model::Mlp& mlp) {
  if (mlp.routing_groups <= 0) return 1;
  return std::min(
      1.0, static_cast<double>(mlp.routing_groups_per_token) / static_cast<double>(mlp.routing_groups));
}

struct ExpertShape {
  double local_tokens = 0;
  double copies = 0;   ///< n: token copies that this rank's experts compute
  double sent = 0;     ///< copies a rank sends, before ETP gathers them
  double width = 0;    ///< hidden, or the latent width
  double experts = 1;  ///< on this rank
  double all_experts = 1;
  double top_k = 1;
  MlpShape mlp;
};

ExpertShape expert_shape(const Writer& w, const model::Mlp& mlp) {
  const RankShape& s = w.shape();
  ExpertShape e;
  e.local_tokens = s.local_tokens;
  e.top_k = static_cast<double>(mlp.experts_per_token);
  e.copies = routed_tokens(mlp, w.layout());
  e.sent = e.copies / s.etp;
  e.width = mlp.latent > 0 ? static_cast<double>(mlp.latent) : s.hidden;
  e.all_experts = static_cast<double>(mlp.experts);
  e.experts = e.all_experts / s.ep;
  e.mlp = {e.copies, static_cast<double>(mlp.expert_ffn) / s.etp, model::is_gated(mlp.activation)};
  return e;
}

void write_router(Writer& w, const model::Mlp& mlp, const ExpertShape& e) {
  const RankShape& s = w.shape();
  w.linear({.name = "router",
            .part = Part::kRouter,
            .tokens = s.local_tokens,
            .in = s.hidden,
            .out = e.all_experts,
            .kept = Linear::Kept::kReplicated,
            .low_precision = false,
            // Transformer Engine runs an fp32 router on matrix units: bf16 operands forward, TF32 backward
            // (megatron/core/transformer/moe/moe_utils.py, RouterGatingLinearFunction).
            .precision = w.software().router_fp32 && !w.software().transformer_engine
                             ? cluster::Precision::kFp32
                             : cluster::Precision::kBf16});
  if (mlp.router_bias && !mlp.hash_routing) w.parameters().replicated += e.all_experts;
  if (mlp.router_linear_bias) w.parameters().replicated += e.all_experts;
  // Scores, their normalisation and the choice: three passes over fp32 scores each way.
  const double scores = 4 * s.local_tokens * e.all_experts;
  w.element_wise("expert choice", Part::kRouter, 3 * scores, 3 * scores);
  w.save("router scores", 12 * s.local_tokens * e.all_experts, RecomputeModule::kMoe);
  w.save("routing map", 4 * s.local_tokens * e.all_experts, RecomputeModule::kMoe);
}

/// Copies to the ranks of their experts (`out`) or back.
void write_dispatch(Writer& w, const model::Mlp& mlp, const ExpertShape& e, int domains, bool out) {
  const RankShape& s = w.shape();
  const char* name = out ? "dispatch" : "combine";
  const Part part = Part::kDispatch;
  const CollectiveKind spread = CollectiveKind::kAllGather, reduce = CollectiveKind::kReduceScatter;
  const auto there_and_back = [&](GroupKind group, double bytes) {
    const Collective gather{spread, group, bytes}, scatter{reduce, group, bytes};
    w.exchange(name, part, out ? gather : scatter, out ? scatter : gather);
  };

  if (w.layout().moe_dispatch == MoeDispatch::kAllGather) {
    const double gathered = 2 * e.local_tokens * e.width * s.etp;
    if (out) {
      if (s.etp > 1) there_and_back(GroupKind::kExpertTensor, gathered);
      if (s.ep > 1) there_and_back(GroupKind::kExpert, gathered * s.ep);
    } else {
      if (s.ep > 1) there_and_back(GroupKind::kExpert, gathered * s.ep);
      if (s.etp > 1) there_and_back(GroupKind::kExpertTensor, gathered);
    }
    return;
  }

  Collective copies{CollectiveKind::kAllToAll, GroupKind::kExpert, 2 * e.sent * e.width};
  copies.copies_per_token = e.top_k;
  if (w.layout().moe_dispatch != MoeDispatch::kAllToAll) {
    copies.distinct_domains_per_token = expected_remote_domains(
        domains, e.top_k, static_cast<double>(mlp.routing_groups > 0 ? mlp.routing_groups_per_token : 0));
    copies.distinct_ranks_per_token = expected_ranks(w.layout().ep, e.top_k, group_share(mlp));
  }
  if (!out && s.etp > 1) there_and_back(GroupKind::kExpertTensor, 2 * e.copies * e.width);
  if (s.ep > 1) w.exchange(name, part, copies, copies);
  if (out && s.etp > 1) there_and_back(GroupKind::kExpertTensor, 2 * e.copies * e.width);
}

void write_permute(Writer& w, const model::Mlp& mlp, const ExpertShape& e, bool out) {
  const RankShape& s = w.shape();
  // Deduplicating dispatchers spread a token to its experts where it arrives, once a rank.
  const bool deduplicates =
      w.layout().moe_dispatch == MoeDispatch::kDeepEp || w.layout().moe_dispatch == MoeDispatch::kHybridEp;
  const double arrivals =
      deduplicates && s.ep > 1 ? expected_ranks(w.layout().ep, e.top_k, group_share(mlp)) : 1.0;
  const double tokens = 2 * e.local_tokens * e.width * arrivals;
  const double copies = 2 * e.copies * e.width;
  if (out) {
    w.element_wise("permute", Part::kPermute, tokens + copies, tokens + copies);
  } else {
    w.element_wise("unpermute", Part::kPermute, tokens + copies, tokens + copies);
  }
  // After the all-to-all, copies arrive by source rank and are sorted by local expert, and back before the
  // combine.
  if (w.layout().moe_dispatch == MoeDispatch::kAllToAll && s.ep > 1 && e.experts > 1) {
    w.element_wise(out ? "sort by expert" : "sort by rank", Part::kPermute, 2 * copies, 2 * copies);
  }
}

/// Whether the un-permutation keeps the experts' output for its backward: `index_add` of deterministic runs
/// does. So does something between GroupedMLP and the all-to-all dispatcher in Primus: the slope of its
/// published DeepSeek-V2-Lite memory over micro-batch 1 to 8, and the step down with DeepEP, ask for one more
/// such tensor.
bool keeps_expert_output(const Writer& w) {
  return w.software().deterministic ||
         (w.software().legacy_grouped_gemm && w.layout().moe_dispatch == MoeDispatch::kAllToAll);
}

void write_expert_mlp(Writer& w, const model::Mlp& mlp, const ExpertShape& e) {
  const RankShape& s = w.shape();
  const MlpShape& m = e.mlp;
  const std::uint32_t moe = RecomputeModule::kMoe;
  const std::uint32_t activation = moe | RecomputeModule::kMoeActivation;
  w.save_routed("permuted expert input", s.operand_bytes * e.copies * e.width, moe);
  w.expert_linear({.name = "expert up projection",
                   .experts = e.experts,
                   .tokens = e.copies,
                   .in = e.width,
                   .out = m.first_width()});
  w.save_routed("expert up projection output", 2 * e.copies * m.first_width(), moe);
  write_activation(w, Part::kRoutedExperts, m);
  // Kernels that weigh the activation by the router's probability keep one result; GELU has none, so the
  // activation before the weight stays too.
  const bool weighted_in_kernel = w.software().fused_activation_with_probabilities &&
                                  mlp.activation != model::Activation::kGelu &&
                                  mlp.activation != model::Activation::kGeglu;
  if (!weighted_in_kernel) {
    w.save_routed("expert activation before its weight", 2 * e.copies * m.ffn, activation);
    w.element_wise("expert weights", Part::kRoutedExperts, 4 * e.copies * m.ffn, 6 * e.copies * m.ffn);
  }
  w.save_routed("expert activation output", s.operand_bytes * e.copies * m.ffn, activation);
  w.expert_linear({.name = "expert down projection",
                   .experts = e.experts,
                   .tokens = e.copies,
                   .in = m.ffn,
                   .out = e.width});
  if (mlp.bias) w.parameters().expert += e.experts * (m.first_width() + e.width);
  if (keeps_expert_output(w)) w.save_routed("expert output", 2 * e.copies * e.width, moe);
  w.working_set(2 * e.copies * (m.ffn + m.first_width() + e.width));
}

}  // namespace

void write_experts(Writer& w, const model::Mlp& mlp, int expert_domains) {
  const RankShape& s = w.shape();
  const ExpertShape e = expert_shape(w, mlp);
  write_router(w, mlp, e);
  if (mlp.latent > 0) {
    w.linear({.name = "latent down projection",
              .part = Part::kRoutedExperts,
              .tokens = s.local_tokens,
              .in = s.hidden,
              .out = e.width,
              .kept = Linear::Kept::kReplicated});
  }
  write_permute(w, mlp, e, true);
  write_dispatch(w, mlp, e, expert_domains, true);
  write_expert_mlp(w, mlp, e);
  write_dispatch(w, mlp, e, expert_domains, false);
  write_permute(w, mlp, e, false);
  if (mlp.latent > 0) {
    w.save("latent expert result", s.operand_bytes * s.local_tokens * e.width, RecomputeModule::kMoe);
    w.linear({.name = "latent up projection",
              .part = Part::kRoutedExperts,
              .tokens = s.local_tokens,
              .in = e.width,
              .out = s.hidden,
              .kept = Linear::Kept::kReplicated});
  }
}

}  // namespace sextant::layers
