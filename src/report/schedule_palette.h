// Colours of the steps in a picture of a schedule.
//
// Kinds differ by hue and by pattern, chunks by shade, so that colour-blind readers and black-and-white
// prints lose nothing. The hues are those of Okabe and Ito, "Color Universal Design" (2008): blue, orange,
// bluish green, reddish purple.
#pragma once

#include <string>

#include "pipeline/schedule.h"

namespace sextant::report {

/// How many shades a picture uses for this many chunks, and which one is a chunk's, from 0, the lightest.
int shades(int chunks);
int shade_of(int chunk, int chunks);

/// The fill of a kind and shade, as an attribute's value, and its SVG definition.
std::string fill(pipeline::Kind kind, int shade);
std::string fill_definition(pipeline::Kind kind, int shade, int shades);

/// Its colour without the pattern, and the colour of numbers on it: "#000000" or "#ffffff", whichever stands
/// out.
std::string background(pipeline::Kind kind, int shade, int shades);
std::string ink(pipeline::Kind kind, int shade, int shades);

}  // namespace sextant::report
