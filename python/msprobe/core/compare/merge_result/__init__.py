"""Tables of several ranks in one workbook."""
