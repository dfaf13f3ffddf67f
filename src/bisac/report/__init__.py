"""The report of a sweep: what its folder holds, the numbers made of that, and the page, figures and tables of them.

In this order: data reads, analyse measures, analysis is what was measured, and page, figures and tables only show it.
"""
