"""The MindSpore side. Comparing needs no MindSpore, so importing this imports none."""
