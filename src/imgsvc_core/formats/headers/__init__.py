"""The headers of image files, one module per format: `read_info` reads the facts and decodes no pixels.

The formats are parsed here rather than by their decoders, because a header is small, a decoder is a large
import and a larger surface for attacks, and facts such as the quality or the delays are not told by all of
them. Only SVG, whose size depends on its drawing, is opened with libvips.
"""
