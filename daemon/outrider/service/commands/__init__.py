"""What commands are: their shapes, the evidence they rest on, and the record of those given.

Carrying them out is the matter of `outrider.service.modes`.
"""
