"""What people look at after a run: plots and reports."""
