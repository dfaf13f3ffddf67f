"""What all pictures and tables share: colours and line styles, learning curves, and the statistics behind them.

It lies below runs: it is given names, rows and arrays, and knows no run folder, sweep, report or figure.
"""
