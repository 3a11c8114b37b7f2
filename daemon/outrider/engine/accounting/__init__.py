"""Totals by the definitions: waits, energy, fairness, utility, predictions and deferrals."""
