"""What things cost: run by hand where a machine is quiet, and part of no gate."""
