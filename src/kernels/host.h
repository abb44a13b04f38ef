// The machine that a measurement ran on.
#pragma once

#include <string>

namespace sextant::kernels {

/// As Linux names it: "AMD EPYC".
std::string processor_name();

/// The share of processor time that the host of a virtual machine gave to others since construction. 0 where
/// Linux does not say.
class StolenTime {
 public:
  StolenTime();
  double share() const;

 private:
  struct Jiffies {
    double stolen = 0.0;
    double all = 0.0;
  };
  static Jiffies read();
  Jiffies begin_;
};

}  // namespace sextant::kernels
