"""Who decides, about which jobs, in which order: policy runners, queues and scheduling passes."""
