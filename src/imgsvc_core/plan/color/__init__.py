"""Color arithmetic on numbers: the meaning of each adjustment and color filter, without any picture.

==================  ===========================================================================
``constants``       the numbers that were chosen by eye, and the CSS luma weights
``white_balance``   linear-light gains of temperature and tint
``curves``          per-channel curves
``matrices``        3x3 color matrices
``weights``         per-pixel weights of vibrance and isolate
``steps``           operations as data, ready for folding
``enhance``         steps measured from a picture's own histogram
==================  ===========================================================================

Channel values are sRGB-encoded and lie in [0, 1], unless a function says otherwise.
"""
