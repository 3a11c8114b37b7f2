"""Policy ``window_net``: a small net, trained elsewhere, selects the next job of a window."""

from outrider_policies.window_net.policy import Net, WindowNet, fresh_net, net_of_text, write_net

__all__ = ["Net", "WindowNet", "fresh_net", "net_of_text", "write_net"]
