"""The report of a sweep: what its folder holds, the statistics, and the page, figures and tables made of them."""
