"""What the processes of an installation share through Redis; without Redis each process has its own in memory."""
