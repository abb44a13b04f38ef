#include "layers/mlp.h"

#include "layers/attention.h"

namespace sextant::layers {

using cost::Part;
using parallel::RecomputeModule;

bool activates_gate_apart(const Software& software) {
  return !software.compiled && (software.framework == "torchtitan" || software.framework == "nanotron");
}

void write_activation(Writer& w, Part part, const MlpShape& m) {
  const double in = 2 * m.tokens * m.first_width();
  const double out = 2 * m.tokens * m.ffn;
  w.element_wise(m.gated ? "gated activation" : "activation", part, in + out, 2 * in + out);
}

void write_dense_mlp(Writer& w, const MlpShape& m, const model::Mlp& mlp, bool shared) {
  const RankShape& s = w.shape();
  const Part part = shared ? Part::kSharedExperts : Part::kDenseMlp;
  const std::uint32_t freed =
      shared ? RecomputeModule::kSharedExperts | RecomputeModule::kMoe : RecomputeModule::kMlp;
  w.column_parallel({.name = shared ? "shared expert up projection" : "mlp up projection",
                     .part = part,
                     .tokens = m.tokens,
                     .in = s.hidden,
                     .out = m.first_width()});
  w.save(shared ? "shared expert up projection output" : "mlp up projection output",
         2 * m.tokens * m.first_width(), freed);
  write_activation(w, part, m);
  if (m.gated && activates_gate_apart(w.software())) w.save("activated gate", 2 * m.tokens * m.ffn, freed);
  w.save(shared ? "shared expert activation output" : "mlp activation output",
         s.operand_bytes * m.tokens * m.ffn, freed);
  w.row_parallel({.name = shared ? "shared expert down projection" : "mlp down projection",
                  .part = part,
                  .tokens = m.tokens,
                  .in = m.ffn,
                  .out = s.hidden});
  if (mlp.bias) {
    w.parameters().dense += m.first_width();
    w.parameters().replicated += s.hidden;
  }
  w.working_set(2 * m.tokens * (m.ffn + m.first_width()) + s.stream_bytes());
}

void write_mlp(Writer& w, const model::Mlp& mlp, int expert_domains) {
  const RankShape& s = w.shape();
  if (mlp.kind == model::MlpKind::kDense) {
    write_norm_before(w, "mlp norm", "normalised mlp input", true, RecomputeModule::kMlp, false);
    write_dense_mlp(w, {s.tokens, static_cast<double>(mlp.ffn) / s.tp, model::is_gated(mlp.activation)}, mlp,
                    false);
    return;
  }
  // Router and permutation read the 16-bit norm output.
  write_norm_before(w, "mlp norm", "normalised mlp input", false, 0, false);
  write_experts(w, mlp, expert_domains);
  if (mlp.shared_expert_ffn <= 0) return;
  write_dense_mlp(
      w, {s.tokens, static_cast<double>(mlp.shared_expert_ffn) / s.tp, model::is_gated(mlp.activation)}, mlp,
      true);
  if (mlp.shared_expert_gate) {
    w.linear({.name = "shared expert gate",
              .part = Part::kSharedExperts,
              .tokens = s.local_tokens,
              .in = s.hidden,
              .out = 1,
              .kept = Linear::Kept::kReplicated,
              .low_precision = false});
    w.element_wise("gated shared expert", Part::kSharedExperts, 2 * s.stream_bytes(), 3 * s.stream_bytes());
  }
}

}  // namespace sextant::layers
