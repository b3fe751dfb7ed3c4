"""Where training is observed: modules, functions, gradients."""
