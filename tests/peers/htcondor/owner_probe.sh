#!/bin/sh
# Run by each startd every second: does the owner of this machine sit at it? A test writes 0 or 1.
read -r present <"/etc/condor/owner/$1" || present=0
[ "$present" = 1 ] && echo "OwnerActive = True" || echo "OwnerActive = False"
echo "- update:true"
