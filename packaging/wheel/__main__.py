"""`python -m packhouse`."""

from packhouse import main

main()
