"""First steps after an install as a shell script: version, configuration, demo."""

from typing import Final

FIRST_STEPS: Final = """
outrider --version
cat > /tmp/outrider.toml <<TOML
mode = "shadow"
[adapters.slurm]
TOML
outrider check-config /tmp/outrider.toml
outrider demo --port 0 --machines 20 --weeks 1 > /tmp/demo.out 2> /tmp/demo.err &
demo=$!
tried=0
until url=$(grep -m1 -oE 'http://127.0.0.1:[0-9]+' /tmp/demo.out); do
    kill -0 $demo || { cat /tmp/demo.err; exit 1; }
    tried=$((tried + 1))
    [ $tried -lt 600 ] || { echo "no address of the demo within 120 s"; exit 1; }
    sleep 0.2
done
$PYTHON - "$url" <<'ASK'
import sys, time, urllib.error, urllib.request

for path, part in (("/readyz", '"ready"'), ("/", "Outrider"), ("/metrics", "outrider_mode")):
    for left in range(240, -1, -1):
        try:
            with urllib.request.urlopen(sys.argv[1] + path, timeout=30) as answer:
                text = answer.read().decode()
            break
        except urllib.error.HTTPError:  # it is not ready yet
            if not left:
                raise
            time.sleep(0.5)
    assert part in text, (path, text[:300])
print("the demo answers")
ASK
kill -INT $demo
wait $demo
"""
"""Script for a shell with `outrider` on its PATH; $PYTHON is any Python 3."""
