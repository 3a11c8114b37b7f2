"""What every peer that is a process needs: a port of its own, and an end."""

import socket
import subprocess

ENDED_WITHIN_S = 10.0


def free_port() -> int:
    """Return a loopback port that nobody listens on at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def end(*processes: "subprocess.Popen[bytes]") -> None:
    """End these processes and no other: asked first, killed if they do not listen."""
    for process in reversed(processes):
        process.terminate()
    for process in processes:
        try:
            process.wait(ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
