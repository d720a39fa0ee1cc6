"use strict";

// Draws the failing inputs of a finding's example on the line of all bit patterns.
{
  const place = document.getElementById("line");
  if (place) {
    const [segments, dtype] = [place.dataset.segments, place.dataset.line].map(JSON.parse);
    place.replaceWith(castigate.drawing.line(segments, dtype, place.dataset.label));
  }
}
