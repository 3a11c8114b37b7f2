"""Commands of users: their shapes, the evidence they need, and their record.

They are executed in `outrider.service.modes`.
"""
