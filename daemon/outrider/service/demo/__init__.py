"""What `outrider demo` runs beside: a simulated campus with a broker and a journal of its past."""
