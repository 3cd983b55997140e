"""``python -m ecg_gnn`` is ``ecg-gnn``."""

from ecg_gnn.cli import main

if __name__ == "__main__":
    main()
