"""The gradient probe: what each parameter's gradient is before an optimizer takes its step."""
