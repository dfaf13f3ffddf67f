"""What is made of several runs, and the paper's figures."""
