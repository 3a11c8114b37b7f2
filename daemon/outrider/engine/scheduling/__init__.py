"""Scheduling: policy runners, their queues of pending jobs, and scheduling passes."""
