"""Whole slides as samples: features of TRIDENT, CLAM and STAMP, and attention back onto slides."""

from diagatt.kinds.slides.files import SlideFile, SlideFolder
from diagatt.kinds.slides.patches import SlidePatches, slide_patches, to_geojson, top_patches
from diagatt.kinds.slides.samples import SlideSamples, read_slides
from diagatt.plots.heat_maps import write_heat_maps

__all__ = [
    "SlideFile",
    "SlideFolder",
    "SlidePatches",
    "SlideSamples",
    "read_slides",
    "slide_patches",
    "to_geojson",
    "top_patches",
    "write_heat_maps",
]
