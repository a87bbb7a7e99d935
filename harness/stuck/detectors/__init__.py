"""The nine detectors, one small class each."""
