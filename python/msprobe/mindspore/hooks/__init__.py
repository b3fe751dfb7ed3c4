"""What must be Python to see what MindSpore does. Importing this imports MindSpore."""
